// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/import/SourceNames.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Location.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MemoryBuffer.h"

namespace mgpu::planner {

using namespace mlir;

static bool inName(char c) {
  return llvm::isAlnum(c) || c == '_' || c == '$' || c == '.' || c == '-';
}

/// The first name of the results list "%a, %b:2 =" that ends `text`.
static StringRef firstResult(StringRef text) {
  text = text.rtrim();
  if (!text.consume_back("="))
    return "";
  while (true) {
    StringRef number = text = text.rtrim();
    number = number.rtrim("0123456789");
    if (number.consume_back(":"))
      text = number;
    size_t percent = text.find_last_not_of(
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_$.-");
    if (percent == StringRef::npos || text[percent] != '%')
      return "";
    StringRef name = text.substr(percent + 1);
    text = text.take_front(percent).rtrim();
    if (!text.consume_back(","))
      return name;
  }
}

SourceText::SourceText(StringRef text) : text(text), lines{0} {
  for (size_t at = text.find('\n'); at != StringRef::npos;
       at = text.find('\n', at + 1))
    lines.push_back(at + 1);
}

StringRef SourceText::from(Location location) const {
  auto file = dyn_cast<FileLineColLoc>(location);
  if (!file || file.getLine() == 0 || file.getLine() > lines.size() ||
      file.getColumn() == 0)
    return "";
  return text.substr(lines[file.getLine() - 1] + file.getColumn() - 1);
}

StringRef SourceText::nameOf(Operation *op) const {
  StringRef rest = from(op->getLoc());
  return rest.empty() ? "" : firstResult(text.drop_back(rest.size()));
}

StringRef SourceText::nameOf(BlockArgument argument) const {
  StringRef rest = from(argument.getLoc());
  return rest.consume_front("%") ? rest.take_while(inName) : "";
}

void setName(Operation *op, StringRef name) {
  if (!name.empty() && !llvm::isDigit(name.front()))
    op->setLoc(
        NameLoc::get(StringAttr::get(op->getContext(), name), op->getLoc()));
}

void setName(BlockArgument argument, StringRef name) {
  argument.setLoc(NameLoc::get(StringAttr::get(argument.getContext(), name),
                               argument.getLoc()));
}

struct SourceNames::File {
  explicit File(std::unique_ptr<llvm::MemoryBuffer> buffer)
      : buffer(std::move(buffer)), text(this->buffer->getBuffer()) {}
  std::unique_ptr<llvm::MemoryBuffer> buffer;
  SourceText text;
};

SourceNames::SourceNames() = default;
SourceNames::~SourceNames() = default;

const SourceText *SourceNames::textOf(Location location) {
  auto place = dyn_cast<FileLineColLoc>(location);
  if (!place)
    return nullptr;
  auto [at, isNew] = files.try_emplace(place.getFilename());
  // Names such as "-" and "<stdin>" are not files.
  if (isNew)
    if (auto buffer =
            llvm::MemoryBuffer::getFile(place.getFilename().getValue()))
      at->second = std::make_unique<File>(std::move(*buffer));
  return at->second ? &at->second->text : nullptr;
}

void SourceNames::nameValues(Operation *root) {
  root->walk([&](Operation *op) {
    if (op->getNumResults() > 0)
      if (const SourceText *text = textOf(op->getLoc()))
        setName(op, text->nameOf(op));
    for (Region &region : op->getRegions())
      for (BlockArgument argument : region.getArguments())
        if (const SourceText *text = textOf(argument.getLoc()))
          if (StringRef name = text->nameOf(argument);
              !name.empty() && !llvm::isDigit(name.front()))
            setName(argument, name);
  });
}

} // namespace mgpu::planner
