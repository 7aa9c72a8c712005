// ptx2cpp: translates the PTX that nvcc embedded in object files to C++, ahead of time.
//   ptx2cpp --arch 90 -o kernels.cpp kernels.o
#include <charconv>
#include <exception>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include "ptx/emitter.h"
#include "ptx/error.h"
#include "ptx/fatbin.h"
#include "ptx/parser.h"

namespace {

using namespace cusim::ptx;

struct Arguments {
  int arch = 0;
  std::string output;
  std::string object;
};

constexpr const char* kUsage = "usage: ptx2cpp --arch NUMBER -o OUTPUT.cpp OBJECT.o";

Arguments parse_arguments(const std::vector<std::string>& words) {
  Arguments arguments;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const bool has_value = i + 1 < words.size();
    if (words[i] == "--arch" && has_value) {
      const std::string& text = words[++i];
      std::from_chars(text.data(), text.data() + text.size(), arguments.arch);
    } else if (words[i] == "-o" && has_value) {
      arguments.output = words[++i];
    } else if (arguments.object.empty()) {
      arguments.object = words[i];
    } else {
      throw TranslationError(kUsage);
    }
  }
  if (arguments.arch <= 0 || arguments.output.empty() || arguments.object.empty())
    throw TranslationError(kUsage);
  return arguments;
}

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw TranslationError("cannot be read");
  return {std::istreambuf_iterator<char>(file), {}};
}

void translate_object(const Arguments& arguments) {
  try {
    const std::string ptx = embedded_ptx(read_file(arguments.object), arguments.arch);
    const std::string text = emit(parse(ptx), arguments.object);
    std::ofstream file(arguments.output, std::ios::binary);
    file << text;
    if (!file.flush()) throw TranslationError("cannot write " + arguments.output);
  } catch (const TranslationError& error) {
    throw TranslationError(arguments.object + ": " + error.what());
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    translate_object(parse_arguments({argv + 1, argv + argc}));
  } catch (const std::exception& error) {
    std::cerr << "ptx2cpp: " << error.what() << '\n';
    return 1;
  }
  return 0;
}
