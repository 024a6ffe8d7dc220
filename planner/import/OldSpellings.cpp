// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/import/OldSpellings.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/MathExtras.h"

#include <initializer_list>

namespace mgpu::planner {

using llvm::StringRef;

namespace {

/// An attribute that was a string and is one of an enumeration.
struct Spelling {
  std::initializer_list<StringRef> operations;
  StringRef attribute, type;
};

const Spelling spellings[] = {
    {{"\"gpu.block_dim\"", "\"gpu.block_id\"", "\"gpu.grid_dim\"",
      "\"gpu.thread_id\""},
     "dimension",
     "dim"},
    {{"\"gpu.all_reduce\""}, "op", "all_reduce_op"},
};

/// The line with `attribute = "word"` as `attribute = #gpu<type word>`; empty
/// where it has none.
std::string respellLine(StringRef line, const Spelling &spelling) {
  if (llvm::none_of(spelling.operations, [&](StringRef operation) {
        return line.contains(operation);
      }))
    return "";
  for (size_t at = line.find(spelling.attribute); at != StringRef::npos;
       at = line.find(spelling.attribute, at + 1)) {
    StringRef rest = line.substr(at + spelling.attribute.size()).ltrim();
    if (!rest.consume_front("="))
      continue;
    rest = rest.ltrim();
    if (!rest.consume_front("\""))
      continue;
    auto [word, after] = rest.split('"');
    if (word.empty() || !llvm::all_of(word, [](char c) {
          return llvm::isAlnum(c) || c == '_';
        }))
      continue;
    return (line.take_front(at) + spelling.attribute + " = #gpu<" +
            spelling.type + " " + word + ">" + after)
        .str();
  }
  return "";
}

/// The elements of `tensor<2x3xi1>` that `type` begins with; 0 for another
/// type.
uint64_t booleansOf(StringRef type) {
  if (!type.consume_front("tensor<"))
    return 0;
  uint64_t count = 1, size = 0;
  while (!type.consumeInteger(10, size)) {
    count = llvm::SaturatingMultiply(count, size);
    if (!type.consume_front("x"))
      return 0;
  }
  return type.starts_with("i1>") ? count : 0;
}

/// The digits of a byte for each element as those of a bit for each.
std::string packed(StringRef digits) {
  std::string bytes((digits.size() / 2 + 7) / 8, '\0');
  for (size_t k = 0; k < digits.size() / 2; ++k)
    if (digits.substr(2 * k, 2) != "00")
      bytes[k / 8] = char(bytes[k / 8] | 1 << k % 8);
  return llvm::toHex(bytes);
}

/// Empty where no constant of i1 has a byte for each element.
std::string packBooleans(StringRef text) {
  constexpr StringRef opening = "dense<\"0x";
  std::string made;
  size_t copied = 0;
  for (size_t at = text.find(opening); at != StringRef::npos;
       at = text.find(opening, at + 1)) {
    const size_t begin = at + opening.size();
    StringRef rest = text.substr(begin);
    StringRef digits = rest.take_while(llvm::isHexDigit);
    rest = rest.drop_front(digits.size());
    if (!rest.consume_front("\">"))
      continue;
    rest = rest.ltrim();
    if (!rest.consume_front(":") || digits.size() < 4 ||
        digits.size() % 2 != 0 || booleansOf(rest.ltrim()) != digits.size() / 2)
      continue;
    made += text.slice(copied, begin);
    made += packed(digits);
    copied = begin + digits.size();
  }
  return copied == 0 ? "" : made + text.substr(copied).str();
}

/// Operations of the gpu dialect.
Respelled respellOperations(StringRef text) {
  Respelled made;
  if (!text.contains("\"gpu."))
    return made;
  llvm::SmallVector<StringRef> lines;
  text.split(lines, '\n');
  for (auto [number, line] : llvm::enumerate(lines)) {
    std::string changed;
    for (const Spelling &spelling : spellings)
      if (changed.empty())
        changed = respellLine(line, spelling);
    if (!changed.empty())
      made.lines.push_back(unsigned(number) + 1);
    made.text += changed.empty() ? line.str() : changed;
    if (number + 1 < lines.size())
      made.text += '\n';
  }
  if (made.lines.empty())
    made.text.clear();
  return made;
}

} // namespace

Respelled respell(StringRef text) {
  Respelled made = respellOperations(text);
  std::string other = packBooleans(made.text.empty() ? text : made.text);
  if (!other.empty())
    made.text = std::move(other);
  return made;
}

} // namespace mgpu::planner
