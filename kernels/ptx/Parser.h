// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_PTX_PARSER_H
#define MGPU_KERNELS_PTX_PARSER_H

// The grammar of PTX as recursive descent over the words of a text.
// ParseOperand.cpp has all that is common to modules and functions.

#include "kernels/ptx/Lexer.h"
#include "kernels/ptx/Syntax.h"

namespace mgpu::kernels::ptx {

class Parser {
public:
  Parser(std::vector<Token> tokens, Module &module)
      : tokens(std::move(tokens)), module(module) {}
  Result<void> parseModule();

private:
  struct Declared {
    Variable variable;
    uint32_t count = 0; ///< of "<count>", where there is one
  };

  const Token &peek(size_t ahead = 0) const {
    return tokens[std::min(at + ahead, tokens.size() - 1)];
  }
  const Token &take() { return tokens[at + 1 < tokens.size() ? at++ : at]; }
  bool takeIf(std::string_view mark);
  Result<void> expect(std::string_view mark);
  Result<std::string_view> expectWord(const char *what);
  Result<uint64_t> expectCount(uint64_t most);
  tl::unexpected<Error> wrong(std::string_view what) const;
  void skipLine();
  Result<void> skipBraces();

  Result<int64_t> expression(int strength = 0);
  Result<int64_t> integerOf(std::string_view text) const;
  Result<Operand> number();
  Result<Operand> operand(bool isCall);
  Result<Operand> address();
  Result<Operand> list(Operand::Kind kind, std::string_view end, bool isCall);

  Result<void> directive();
  Result<void> fileDirective();
  Result<void> function(bool isEntry);
  Result<void> performance(Function &function);
  Result<void> parameters(Function &function, std::vector<uint32_t> &into);
  Result<void> addFunction(Function function);
  Result<Declared> declarator(const Variable &like);
  Result<Variable> declaration(bool &isExtern);
  Result<void> moduleVariable(bool isExtern);
  Result<void> extents(Variable &variable);
  Result<void> initialiser(Variable &variable, uint64_t &offset);

  Result<void> body(Function &function);
  Result<void> bodyItem(Function &function);
  Result<void> localVariables(Function &function);
  Result<void> location();
  Result<void> labelled(Function &function, std::string_view label);
  Result<void> instruction(Function &function);

  std::vector<Token> tokens;
  Module &module;
  size_t at = 0;
  std::vector<uint32_t> open; ///< scopes of the function, the innermost last
  Place place;                ///< of the last .loc
};

} // namespace mgpu::kernels::ptx

#endif // MGPU_KERNELS_PTX_PARSER_H
