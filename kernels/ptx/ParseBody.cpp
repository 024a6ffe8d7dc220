// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/ptx/Parser.h"

#include <fmt/format.h>

namespace mgpu::kernels::ptx {

Result<void> Parser::body(Function &function) {
  MGPU_TRY(expect("{"));
  while (!open.empty()) {
    if (peek().kind == Token::Kind::End)
      return wrong("'}'");
    if (takeIf("}")) {
      open.pop_back();
    } else if (takeIf("{")) {
      if (open.size() > 1000)
        return wrong("fewer blocks within each other");
      Scope scope;
      scope.parent = open.back();
      open.push_back(uint32_t(function.scopes.size()));
      function.scopes.push_back(std::move(scope));
    } else {
      MGPU_TRY(bodyItem(function));
    }
  }
  return {};
}

Result<void> Parser::bodyItem(Function &function) {
  const Token &token = peek();
  if (token.is(".loc"))
    return location();
  if (token.is(".file"))
    return fileDirective();
  if (token.is(".pragma")) {
    while (!peek().is(";") && peek().kind != Token::Kind::End)
      take();
    return expect(";");
  }
  if (token.is(".branchtargets") || token.is(".calltargets"))
    return wrong("a label before it");
  if (token.kind == Token::Kind::Word && token.text[0] == '.')
    return localVariables(function);
  if (token.kind == Token::Kind::Word && peek(1).is(":")) {
    const std::string_view label = take().text;
    take();
    return labelled(function, label);
  }
  if (takeIf(";"))
    return {};
  return instruction(function);
}

/// ".loc 1 12 3, function_name label+8, inlined_at 1 10 3" ends with its line.
Result<void> Parser::location() {
  const uint32_t line = take().line;
  MGPU_TRY_ASSIGN(const uint64_t file, expectCount(1 << 20));
  MGPU_TRY_ASSIGN(const uint64_t number, expectCount(UINT32_MAX));
  place.file = uint32_t(file);
  place.sourceLine = uint32_t(number);
  while (peek().line == line && peek().kind != Token::Kind::End)
    take();
  return {};
}

Result<void> Parser::labelled(Function &function, std::string_view label) {
  Scope &scope = function.scopes[open.back()];
  if (peek().is(".branchtargets") || peek().is(".calltargets")) {
    take();
    std::vector<std::string_view> names;
    do {
      MGPU_TRY_ASSIGN(const std::string_view name, expectWord("a label"));
      names.push_back(name);
    } while (takeIf(","));
    function.targets[label] = std::move(names);
    return expect(";");
  }
  if (takeIf(".callprototype")) {
    Function shape;
    shape.scopes.emplace_back();
    MGPU_TRY(parameters(shape, shape.results));
    MGPU_TRY(expectWord("'_'"));
    MGPU_TRY(parameters(shape, shape.parameters));
    MGPU_TRY(performance(shape));
    function.prototypes[label] = uint32_t(shape.parameters.size());
    return expect(";");
  }
  if (!scope.labels.try_emplace(label, uint32_t(function.statements.size()))
           .second)
    return fail(ErrorKind::Invalid,
                fmt::format("line {}: the label '{}' is there twice",
                            peek().line, label));
  return {};
}

Result<void> Parser::localVariables(Function &function) {
  bool isExtern = false;
  MGPU_TRY_ASSIGN(Variable like, declaration(isExtern));
  const uint32_t scope = open.back();
  do {
    MGPU_TRY_ASSIGN(Declared declared, declarator(like));
    Variable &variable = declared.variable;
    variable.scope = scope;
    variable.isExtern = isExtern;
    Scope &into = function.scopes[scope];
    if (declared.count && !variable.isRegister)
      return wrong("a register before '<'");
    if (declared.count)
      into.ranges[variable.name] = {declared.count, variable.type,
                                    variable.vector};
    else if (!into.variables
                  .try_emplace(variable.name,
                               uint32_t(function.variables.size()))
                  .second)
      return fail(ErrorKind::Invalid,
                  fmt::format("line {}: '{}' is declared twice", variable.line,
                              variable.name));
    else
      function.variables.push_back(std::move(variable));
  } while (takeIf(","));
  return expect(";");
}

Result<void> Parser::instruction(Function &function) {
  Statement out;
  out.scope = open.back();
  out.place = place;
  out.place.line = peek().line;
  if (takeIf("@")) {
    out.isGuardNegated = takeIf("!");
    MGPU_TRY_ASSIGN(out.guard, expectWord("a predicate"));
  }
  MGPU_TRY_ASSIGN(out.opcode, expectWord("an instruction"));
  const bool isCall = out.opcode == "call" || out.opcode == "call.uni";
  while (!takeIf(";")) {
    if (!out.operands.empty())
      MGPU_TRY(expect(","));
    if (out.operands.size() >= 64)
      return wrong("';'");
    MGPU_TRY_ASSIGN(Operand next, operand(isCall));
    out.operands.push_back(std::move(next));
  }
  function.statements.push_back(std::move(out));
  return {};
}

} // namespace mgpu::kernels::ptx
