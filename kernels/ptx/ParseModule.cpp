// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/ptx/Parser.h"

#include <bit>
#include <cstring>
#include <fmt/format.h>

namespace mgpu::kernels::ptx {

/// No array of a text is larger.
static constexpr uint64_t mostBytes = uint64_t(1) << 30;

static std::optional<Space> spaceNamed(std::string_view word) {
  constexpr std::pair<std::string_view, Space> names[] = {
      {".global", Space::Global},
      {".shared", Space::Shared},
      {".local", Space::Local},
      {".param", Space::Param},
      {".const", Space::Const}};
  for (const auto &[name, space] : names)
    if (name == word)
      return space;
  return std::nullopt;
}

Result<void> Parser::parseModule() {
  while (peek().kind != Token::Kind::End)
    MGPU_TRY(directive());
  return {};
}

Result<void> Parser::fileDirective() {
  take();
  MGPU_TRY_ASSIGN(const uint64_t number, expectCount(1 << 20));
  if (peek().kind != Token::Kind::Text)
    return wrong("a file's name");
  module.files[uint32_t(number)] = std::string(take().text);
  if (takeIf(",")) {
    MGPU_TRY(expression());
    MGPU_TRY(expect(","));
    MGPU_TRY(expression());
  }
  return {};
}

Result<void> Parser::directive() {
  bool isExtern = false;
  for (;;) {
    if (takeIf(".extern"))
      isExtern = true;
    else if (!takeIf(".visible") && !takeIf(".weak") && !takeIf(".common"))
      break;
  }
  const Token &token = peek();
  if (token.is(".version")) {
    take();
    take();
  } else if (token.is(".target")) {
    take();
    MGPU_TRY_ASSIGN(const std::string_view name, expectWord("a target"));
    module.target = name;
    while (takeIf(","))
      MGPU_TRY(expectWord("an option of the target"));
  } else if (token.is(".address_size")) {
    take();
    MGPU_TRY_ASSIGN(const uint64_t bits, expectCount(64));
    if (bits != 32 && bits != 64)
      return wrong("an address size of 32 or 64 before it");
    module.addressBits = uint32_t(bits);
  } else if (token.is(".file")) {
    return fileDirective();
  } else if (token.is(".section")) {
    take();
    take();
    return skipBraces();
  } else if (token.is(".pragma")) {
    while (!peek().is(";") && peek().kind != Token::Kind::End)
      take();
    return expect(";");
  } else if (token.is(".entry") || token.is(".func")) {
    take();
    return function(token.is(".entry"));
  } else if (token.is(".loc")) {
    skipLine();
  } else if (spaceNamed(token.text)) {
    return moduleVariable(isExtern);
  } else if (!takeIf(";")) {
    return wrong("a directive");
  }
  return {};
}

//===----------------------------------------------------------------------===//
// Variables (section 5.4)
//===----------------------------------------------------------------------===//

/// A declaration up to the first name: ".global .align 4 .b8".
Result<Variable> Parser::declaration(bool &isExtern) {
  Variable out;
  out.line = peek().line;
  bool hasType = false;
  uint64_t align = 0;
  std::string_view joined; // ".param.u64" is two words
  while (!joined.empty() ||
         (peek().kind == Token::Kind::Word && peek().text[0] == '.')) {
    if (joined.empty())
      joined = take().text;
    const std::string_view word = joined.substr(0, joined.find('.', 1));
    joined.remove_prefix(word.size());
    if (const std::optional<Space> space =
            spaceNamed(word.substr(0, word.find("::")))) {
      out.space = *space;
    } else if (word == ".reg") {
      out.isRegister = true;
    } else if (word == ".align") {
      MGPU_TRY_ASSIGN(align, expectCount(mostBytes));
      if (!std::has_single_bit(align))
        return wrong("an alignment that is a power of two before it");
    } else if (word == ".v2" || word == ".v4" || word == ".v8") {
      out.vector = uint8_t(word[2] - '0');
    } else if (word == ".ptr") {
      while (peek().is(".global") || peek().is(".shared") ||
             peek().is(".local") || peek().is(".const"))
        take();
      if (takeIf(".align"))
        MGPU_TRY(expression());
    } else if (word == ".attribute") {
      MGPU_TRY(expect("("));
      while (!takeIf(")"))
        if (take().kind == Token::Kind::End)
          return wrong("')'");
    } else if (word == ".extern") {
      isExtern = true;
    } else if (const auto type = scalarNamed(word.substr(1))) {
      out.type = *type;
      hasType = true;
    } else {
      return fail(ErrorKind::Unsupported,
                  fmt::format("line {}: '{}' of a variable is not supported",
                              out.line, word));
    }
  }
  if (!hasType)
    return wrong("a type");
  const uint32_t natural = bytesOf(out.type) * out.vector;
  out.align = align ? uint32_t(align) : natural;
  out.bytes = natural;
  return out;
}

Result<void> Parser::extents(Variable &variable) {
  while (takeIf("[")) {
    if (takeIf("]")) {
      variable.isUnsized = true;
      variable.bytes = 0;
      continue;
    }
    MGPU_TRY_ASSIGN(const uint64_t extent, expectCount(mostBytes));
    MGPU_TRY(expect("]"));
    const uint64_t each = variable.isUnsized
                              ? bytesOf(variable.type) * variable.vector
                              : variable.bytes;
    if (extent != 0 && each > mostBytes / extent)
      return wrong("an array of less than 1 GiB before it");
    variable.bytes = variable.isUnsized ? 0 : each * extent;
  }
  return {};
}

/// Numbers one behind the other, whatever braces are around them.
Result<void> Parser::initialiser(Variable &variable, uint64_t &offset) {
  const uint32_t each = bytesOf(variable.type);
  for (size_t depth = 0;;) {
    while (takeIf("{"))
      ++depth;
    if (!peek().is("}")) {
      Initial initial{offset, each, 0, {}};
      MGPU_TRY_ASSIGN(Operand value, operand(false));
      if (takeIf("(")) { // generic(name), 0xFF00(name)
        if (value.kind == Operand::Kind::Integer)
          return fail(ErrorKind::Unsupported,
                      fmt::format("line {}: one byte of an address is not "
                                  "supported as an initial value",
                                  peek().line));
        MGPU_TRY_ASSIGN(value, operand(false));
        MGPU_TRY(expect(")"));
      }
      initial.value = uint64_t(value.value);
      initial.symbol = value.name;
      if (value.kind == Operand::Kind::Float && value.floatBits == 0)
        initial.value = each == 4 ? std::bit_cast<uint32_t>(float(value.number))
                                  : std::bit_cast<uint64_t>(value.number);
      if (offset + each > mostBytes)
        return wrong("an array of less than 1 GiB before it");
      offset += each;
      variable.initial.push_back(initial);
    }
    while (depth > 0 && takeIf("}"))
      --depth;
    if (depth == 0)
      return {};
    MGPU_TRY(expect(","));
  }
}

Result<Parser::Declared> Parser::declarator(const Variable &like) {
  Declared out{like, 0};
  MGPU_TRY_ASSIGN(out.variable.name, expectWord("a name"));
  out.variable.line = peek().line;
  if (takeIf("<")) {
    MGPU_TRY_ASSIGN(const uint64_t count, expectCount(UINT32_MAX));
    out.count = uint32_t(count);
    MGPU_TRY(expect(">"));
  }
  MGPU_TRY(extents(out.variable));
  if (takeIf("=")) {
    uint64_t offset = 0;
    MGPU_TRY(initialiser(out.variable, offset));
    if (out.variable.isUnsized) {
      out.variable.bytes = offset;
      out.variable.isUnsized = false;
    }
    if (offset > out.variable.bytes)
      return wrong("no more initial values than the array has elements before");
  }
  return out;
}

Result<void> Parser::moduleVariable(bool isExtern) {
  MGPU_TRY_ASSIGN(Variable like, declaration(isExtern));
  do {
    MGPU_TRY_ASSIGN(Declared declared, declarator(like));
    declared.variable.isExtern = isExtern;
    const auto number = uint32_t(module.variables.size());
    // A declaration may come before its definition.
    auto [place, isNew] =
        module.variableNames.try_emplace(declared.variable.name, number);
    if (!isNew && !module.variables[place->second].isExtern && !isExtern)
      return fail(ErrorKind::Invalid,
                  fmt::format("line {}: '{}' is declared twice",
                              declared.variable.line, declared.variable.name));
    if (isNew || !isExtern) {
      place->second = number;
      module.variables.push_back(std::move(declared.variable));
    }
  } while (takeIf(","));
  return expect(";");
}

//===----------------------------------------------------------------------===//
// Functions (section 5.6 and 11.3)
//===----------------------------------------------------------------------===//

Result<void> Parser::parameters(Function &function,
                                std::vector<uint32_t> &into) {
  if (!takeIf("("))
    return {};
  while (!takeIf(")")) {
    if (!into.empty())
      MGPU_TRY(expect(","));
    bool isExtern = false;
    MGPU_TRY_ASSIGN(Variable like, declaration(isExtern));
    MGPU_TRY_ASSIGN(Declared declared, declarator(like));
    into.push_back(uint32_t(function.variables.size()));
    function.scopes[0].variables[declared.variable.name] = into.back();
    function.variables.push_back(std::move(declared.variable));
    if (into.size() > 4096)
      return wrong("at most 4096 parameters");
  }
  return {};
}

Result<void> Parser::performance(Function &function) {
  for (;;) {
    const std::string_view word = peek().text;
    const bool isThreads = word == ".maxntid" || word == ".reqntid";
    const bool isCluster = word == ".reqnctapercluster";
    if (isThreads || isCluster) {
      take();
      uint32_t values[3] = {1, 1, 1};
      for (int axis = 0; axis < 3; ++axis) {
        MGPU_TRY_ASSIGN(const uint64_t value, expectCount(65535));
        values[axis] = uint32_t(value);
        if (axis == 2 || !takeIf(","))
          break;
      }
      std::memcpy(isCluster ? function.cluster : function.needed, values,
                  sizeof values);
      if (word == ".maxntid") {
        const uint64_t all = uint64_t(values[0]) * values[1] * values[2];
        function.maxThreads = uint32_t(std::min<uint64_t>(all, 1024));
        std::memset(function.needed, 0, sizeof function.needed);
      }
    } else if (word == ".minnctapersm" || word == ".maxnctapersm" ||
               word == ".maxnreg" || word == ".maxclusterrank" ||
               word == ".abi_preserve" || word == ".abi_preserve_control") {
      take();
      MGPU_TRY(expression());
    } else if (word == ".explicitcluster" || word == ".noreturn" ||
               word == ".blocksareclusters") {
      take();
    } else if (word == ".pragma") {
      take();
      while (!peek().is(";") && peek().kind != Token::Kind::End)
        take();
      MGPU_TRY(expect(";"));
    } else {
      return {};
    }
  }
}

Result<void> Parser::addFunction(Function function) {
  const auto number = uint32_t(module.functions.size());
  auto [place, isNew] = module.functionNames.try_emplace(function.name, number);
  if (isNew) {
    module.functions.push_back(std::move(function));
  } else if (Function &known = module.functions[place->second];
             !known.hasBody) {
    known = std::move(function);
  } else if (function.hasBody) {
    return fail(ErrorKind::Invalid,
                fmt::format("line {}: '{}' is defined twice", function.line,
                            function.name));
  }
  return {};
}

Result<void> Parser::function(bool isEntry) {
  Function out;
  out.isEntry = isEntry;
  out.scopes.emplace_back();
  out.line = peek().line;
  if (takeIf(".attribute"))
    while (!takeIf(")"))
      if (take().kind == Token::Kind::End)
        return wrong("')'");
  if (!isEntry)
    MGPU_TRY(parameters(out, out.results));
  MGPU_TRY_ASSIGN(out.name, expectWord("the name of a function"));
  MGPU_TRY(parameters(out, out.parameters));
  MGPU_TRY(performance(out));
  if (takeIf(";"))
    return addFunction(std::move(out));
  out.hasBody = true;
  open = {0};
  place = {};
  MGPU_TRY(body(out));
  return addFunction(std::move(out));
}

Result<Module> parse(std::string text) {
  Module module;
  if (text.size() > (size_t(1) << 28))
    return fail(ErrorKind::Unsupported,
                "a PTX text of more than 256 MiB is not supported");
  module.text = std::make_shared<const std::string>(std::move(text));
  MGPU_TRY_ASSIGN(std::vector<Token> tokens, tokensOf(*module.text));
  MGPU_TRY(Parser(std::move(tokens), module).parseModule());
  return module;
}

} // namespace mgpu::kernels::ptx
