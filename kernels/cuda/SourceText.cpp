// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/cuda/SourceText.h"

#include "dialect/mgpu/Diagnostics.h"
#include "kernels/cuda/CudaHelpers.h"
#include "kernels/cuda/CudaTypes.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Location.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace mgpu::kernels::cuda {

StringRef sourceName(Location location) {
  if (auto name = dyn_cast<NameLoc>(location))
    return name.getName();
  if (auto fused = dyn_cast<FusedLoc>(location))
    for (Location each : fused.getLocations())
      if (StringRef found = sourceName(each); !found.empty())
        return found;
  return {};
}

void Text::at(Location location) {
  auto [file, line] = ir::fileLine(location);
  wanted = {file.str(), line};
}

void Text::line(const Twine &words) {
  if (wanted.line) {
    if (!(wanted == now))
      text += "#line " + std::to_string(wanted.line) + " " +
              quoted(wanted.file) + "\n";
    now = wanted;
    ++now.line;
  } else {
    ++now.line;
  }
  std::string body = words.str();
  if (!body.empty())
    text += std::string(2 * depth, ' ') + body;
  text += '\n';
}

void Text::raw(StringRef lines) {
  text += lines;
  now = {};
}

void Text::headLines(size_t begin, StringRef head) {
  std::string lines = text.substr(begin);
  text.resize(begin);
  if (lines.empty())
    return;
  if (StringRef(lines).starts_with("#line")) {
    size_t end = lines.find('\n') + 1;
    text += lines.substr(0, end);
    lines.erase(0, end);
  }
  std::string indent(2 * depth, ' ');
  if (llvm::count(lines, '\n') == 1) {
    text += indent + head.str() + StringRef(lines).ltrim().str();
    return;
  }
  text += indent + head.str() + "{\n";
  if (wanted.line)
    text += "#line " + std::to_string(wanted.line) + " " + quoted(wanted.file) +
            "\n";
  text += lines + indent + "}\n";
  now = {};
}

/// The words that no name may be; they are the same for all, so made once.
static const llvm::StringSet<> &reservedNames() {
  // Words of C++17, macros and types of CUDA, and every function that emitted
  // code calls: a variable of that name would hide it. So would one named like
  // a helper.
  static constexpr const char *words =
      "alignas alignof and and_eq asm auto bitand bitor bool break case catch "
      "char char16_t char32_t class compl const const_cast constexpr continue "
      "decltype default delete do double dynamic_cast else enum explicit "
      "export extern false float for friend goto if inline int long mutable "
      "namespace new noexcept not not_eq nullptr operator or or_eq private "
      "protected public register reinterpret_cast return short signed sizeof "
      "static static_assert static_cast struct switch template this "
      "thread_local throw true try typedef typeid typename union unsigned "
      "using virtual void volatile wchar_t while xor xor_eq final override "
      "NULL INFINITY NAN linux unix i386 assert "
      "threadIdx blockIdx blockDim gridDim warpSize dim3 "
      "f16 bf16 f8e4m3 f8e5m2 vec at globalX globalY globalZ sourceX launch "
      "item lane "
      "part old "
      "min max abs labs llabs printf memcpy "
      "acos acosf acosh acoshf asin asinf asinh asinhf atan atanf atan2 "
      "atan2f atanh atanhf cbrt cbrtf ceil ceilf copysign copysignf cos cosf "
      "cosh coshf erf erff erfc erfcf exp expf exp2 exp2f expm1 expm1f fabs "
      "fabsf floor floorf fma fmaf fmax fmaxf fmin fminf fmod fmodf log logf "
      "log10 log10f log1p log1pf log2 log2f pow powf rint rintf round roundf "
      "rsqrt rsqrtf sin sinf sinh sinhf sqrt sqrtf tan tanf tanh tanhf trunc "
      "truncf atomicAdd atomicSub atomicExch atomicMin atomicMax atomicAnd "
      "atomicOr atomicXor atomicCAS "
      "sharedAddress makeBarrier publishBarriers arriveAt arriveForToken "
      "arriveExpecting awaitPhase awaitToken loadBox loadTensor prefetchMap "
      "storeBox storeTensor awaitStores fenceTile "
      "fenceCopies beginProducts closeProducts awaitProducts holdSum "
      "forgetIndex multiplyF16 multiplyBf16 tileDescriptor tileAddress";
  static const llvm::StringSet<> names = [] {
    llvm::StringSet<> found = helperNames();
    for (StringRef word : llvm::split(words, ' '))
      found.insert(word);
    return found;
  }();
  return names;
}

std::string Names::fresh(StringRef wish) {
  std::string name;
  for (char c : wish)
    name += llvm::isAlnum(c) || c == '_' ? c : '_';
  // Leading underscores and digits belong to others; so do our own prefixes.
  if (name.empty() || llvm::isDigit(name[0]) || name[0] == '_' ||
      StringRef(name).starts_with_insensitive("mgpu"))
    name = "v" + name;
  // Two in a row anywhere are the compiler's in C++.
  for (size_t at; (at = name.find("__")) != std::string::npos;)
    name.erase(at, 1);
  std::string unique = name;
  for (unsigned &k = next[name];
       reservedNames().contains(unique) || !used.insert(unique).second;)
    unique = name + "_" + std::to_string(++k);
  return unique;
}

std::string withOwnLines(const std::string &text, const std::string &file) {
  std::string out;
  size_t number = 0;
  for (size_t at = 0; at < text.size();) {
    size_t end = text.find('\n', at) + 1;
    StringRef line(text.data() + at, end - at);
    ++number;
    out += line == ownLine
               ? "#line " + std::to_string(number + 1) + " \"" + file + "\"\n"
               : line.str();
    at = end;
  }
  return out;
}

std::string fill(std::string text, const Substitutions &words) {
  for (size_t at = 0; (at = text.find('$', at)) != std::string::npos;) {
    size_t end = text.find('$', at + 1);
    const std::string &word = words.at(text.substr(at + 1, end - at - 1));
    text.replace(at, end + 1 - at, word);
    at += word.size();
  }
  return text;
}

std::string macroDefault(const std::string &name, uint32_t value) {
  return "#ifndef " + name + "\n#define " + name + " " + std::to_string(value) +
         "\n#endif\n";
}

} // namespace mgpu::kernels::cuda
