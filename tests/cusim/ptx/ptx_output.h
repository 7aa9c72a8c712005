// printf and assert of device code.
#pragma once

#include <cstdio>
#include <cstring>
#include <string>

#include "ptx/ptx_frame.h"

namespace cusim::ptx {

/// Reads the arguments of printf, which nvcc lays out like a struct.
class PackedArguments {
 public:
  explicit PackedArguments(u64 address) : next_(address) {}

  template <class T>
  T take() {
    next_ = (next_ + sizeof(T) - 1) / sizeof(T) * sizeof(T);
    T value;
    std::memcpy(&value, reinterpret_cast<const void*>(next_), sizeof(T));
    next_ += sizeof(T);
    return value;
  }

 private:
  u64 next_;
};

/// One conversion ("%5.2f") with its argument as text.
inline std::string format_one(const std::string& conversion, PackedArguments& arguments) {
  char text[512];
  const char kind = conversion.back();
  const bool is_long = conversion.find('l') != std::string::npos;
  if (std::strchr("aAeEfFgG", kind) != nullptr) {
    std::snprintf(text, sizeof text, conversion.c_str(), arguments.take<double>());
  } else if (kind == 's') {
    std::snprintf(text, sizeof text, conversion.c_str(), arguments.take<const char*>());
  } else if (kind == 'p' || is_long) {
    std::snprintf(text, sizeof text, conversion.c_str(), arguments.take<long long>());
  } else {
    std::snprintf(text, sizeof text, conversion.c_str(), arguments.take<int>());
  }
  return text;
}

inline std::string format(const char* text, PackedArguments arguments) {
  std::string result;
  while (*text != '\0') {
    const std::size_t plain = std::strcspn(text, "%");
    result.append(text, plain);
    text += plain;
    if (text[0] == '\0') break;
    if (text[1] == '%') {
      result += '%';
      text += 2;
      continue;
    }
    const std::size_t length = std::strcspn(text, "aAeEfFgGdiouxXcsp") + 1;
    result += format_one(std::string(text, length), arguments);
    text += length;
  }
  return result;
}

template <class T>
inline T argument(Arguments arguments, int index) {
  T value;
  std::memcpy(&value, arguments[index], sizeof(T));
  return value;
}

/// vprintf(format, arguments): to stdout at once; the result is an int.
inline void device_printf(const Frame&, Arguments arguments, void* result) {
  const std::string text =
      format(argument<const char*>(arguments, 0), PackedArguments(argument<u64>(arguments, 1)));
  std::fputs(text.c_str(), stdout);
  const int printed = 1;
  if (result != nullptr) std::memcpy(result, &printed, sizeof printed);
}

/// __assertfail(condition, file, line, function, size of a character).
inline void device_assert(const Frame& frame, Arguments arguments, void*) {
  throw KernelError{kAssertFailed,
                    std::string("assertion failed: ") + argument<const char*>(arguments, 0) +
                        " at " + argument<const char*>(arguments, 1) + ":" +
                        std::to_string(argument<u32>(arguments, 2)) + " in " + where(frame)};
}

}  // namespace cusim::ptx
