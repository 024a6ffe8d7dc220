// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/import/OldSpellings.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/Twine.h"

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

} // namespace

Respelled respell(StringRef text) {
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

} // namespace mgpu::planner
