// The translator itself: the fat binary, PTX text, and what it refuses.
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>

#include "ptx/elf.h"
#include "ptx/emitter.h"
#include "ptx/error.h"
#include "ptx/fatbin.h"
#include "ptx/parser.h"
#include "support/catch.h"

namespace cusim::ptx {
namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// The message of the error that `call` throws.
template <class Call>
std::string message_of(Call call) {
  try {
    call();
  } catch (const TranslationError& error) {
    return error.what();
  }
  FAIL("the call threw nothing");
  return {};
}

/// The object file that nvcc made of ptx_fault_kernels.cu.
std::string object_file() {
  const std::string paths = CUSIM_PTX_OBJECTS;
  std::ifstream file(paths.substr(0, paths.find(':')), std::ios::binary);
  REQUIRE(file);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// A kernel with the given body.
std::string kernel(const std::string& body) {
  return ".version 9.0\n.target sm_90\n.address_size 64\n"
         ".visible .entry k(.param .u64 k_param_0, .param .align 8 .b8 k_param_1[24])\n"
         ".maxntid 256, 1, 1\n{\n.reg .pred %p<3>;\n.reg .b32 %r<5>;\n.reg .b64 %rd<4>;\n" +
         body + "\nret;\n}\n.file 3 \"where.cu\"\n";
}

std::string translated(const std::string& body) {
  return emit(parse(kernel(body)), "k.o");
}

TEST_CASE("the PTX of the architecture asked for is taken") {
  const std::string object = object_file();
  CHECK(contains(embedded_ptx(object, 75), ".target sm_75"));
  CHECK(contains(embedded_ptx(object, 90), ".target sm_90"));
}

TEST_CASE("a missing architecture is an error that says what there is") {
  const std::string text = message_of([] { embedded_ptx(object_file(), 80); });
  CHECK(contains(text, "no PTX for compute_80"));
  CHECK(contains(text, "PTX compute_75, PTX compute_90"));
}

TEST_CASE("files that are no objects, or cut off, are refused") {
  const std::string object = object_file();
  CHECK(contains(message_of([] { embedded_ptx("text", 90); }), "not a 64-bit"));
  CHECK(contains(message_of([&] { embedded_ptx(object.substr(0, 2000), 90); }), "cut off"));
}

TEST_CASE("compressed PTX is refused") {
  std::string object = object_file();
  const std::string_view section = elf_sections(object, ".nv_fatbin").at(0);
  const auto flags = static_cast<std::size_t>(section.data() - object.data()) + 16 + 40;
  object[flags + 1] = static_cast<char>(object[flags + 1] | 0x80);
  CHECK(contains(message_of([&] { embedded_ptx(object, 75); }), "--no-compress"));
}

TEST_CASE("an instruction without a rule is an error that names it and the kernel") {
  const std::string text =
      message_of([] { translated("add.s32 %r1, %r2, 1;\nfoo.bar %r1, %r2;"); });
  CHECK(contains(text, "k: `foo.bar %r1, %r2`"));
  CHECK(contains(text, "no rule"));
}

TEST_CASE("unknown modifiers, types, names and operands are errors") {
  CHECK(contains(message_of([] { translated("add.wrong.s32 %r1, %r2, 1;"); }), "no rule"));
  CHECK(contains(message_of([] { translated("add.s32 %r1, %r2;"); }), "no rule"));
  CHECK(contains(message_of([] { translated("add.s32 %r1, %r2, %r9;"); }), "unknown name %r9"));
  CHECK(contains(message_of([] { translated(".reg .b128 %q<2>;"); }), "unknown type .b128"));
  CHECK(contains(message_of([] { translated("call.uni missing, ();"); }), "unknown name missing"));
  CHECK(contains(message_of([] { translated("call.uni %rd1, ();"); }), "pointers"));
  CHECK(contains(message_of([] { translated("bar.sync 1;"); }), "barrier 0"));
  CHECK(contains(message_of([] { translated("add.s32 {%r1, %r2}, %r2, 1;"); }), "vector"));
}

TEST_CASE("initial values that are no numbers are refused") {
  const std::string text =
      message_of([] { parse(".global .align 8 .u64 p = generic(base)+8;\n"); });
  CHECK(contains(text, "generic(base)+8 is not a number"));
}

TEST_CASE("statements keep their line numbers") {
  const std::string text = translated(".loc 3 17 5\nadd.s32 %r1, %r2, 1;");
  CHECK(contains(text, "#line 17 \"where.cu\"\nset(_r1_, add(as<s32>(_r2_), as<s32>(1ull)));"));
}

TEST_CASE("predicates, labels, scopes and comments are translated") {
  const std::string text = translated(
      "$L__1: // here\n{ .reg .b32 %temp; /* a, b; */ mov.b64 {%temp, %r1}, %rd1; }\n"
      "@!%p1 bra $L__1;\nld.param.v2.u32 {%r1, _}, [k_param_1+8];");
  CHECK(contains(text, "L__1:;"));
  CHECK(contains(text, "if (!as<pred>(_p1_)) goto _L__1;"));
  CHECK(contains(text, "unpack(as<b64>(_rd1_), 0, _temp_);"));
  CHECK(contains(text, "as<u64>(address_of(arguments[1])) + 8ull"));
  CHECK(contains(text, "set(ignored, "));
  CHECK_FALSE(contains(text, "here"));
}

TEST_CASE("sizes of parameters and shared memory are announced") {
  const std::string text = translated(".shared .align 16 .b8 a[20];\n.shared .align 8 .f64 b;");
  CHECK(contains(text, "sizes_function_k[] = {8, 24, 0};"));
  CHECK(contains(text, "{\"k\", 2, sizes_function_k, 32, run<function_k, 32>}"));
}

TEST_CASE("a table of targets becomes a switch") {
  const std::string text =
      translated("$L_a:\n$L_b:\nts: .branchtargets $L_a, $L_b;\nbrx.idx %r1, ts;");
  CHECK(contains(text, "case 0: goto _L_a; case 1: goto _L_b;"));
}

}  // namespace
}  // namespace cusim::ptx
