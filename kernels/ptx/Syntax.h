// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_PTX_SYNTAX_H
#define MGPU_KERNELS_PTX_SYNTAX_H

// A PTX text as its statements: names are looked up, instructions are not yet
// known. Views lie in the text, which the Module keeps.

#include "kernels/ptx/Scalar.h"
#include "support/Result.h"

#include <map>
#include <memory>
#include <vector>

namespace mgpu::kernels::ptx {

struct Operand {
  enum class Kind : uint8_t {
    Name,
    Integer,
    Float,
    Address,
    List,
    Group,
    Sink
  };
  Kind kind = Kind::Name;
  bool isNegated = false; ///< "!%p"
  std::string_view name;  ///< of a register, a variable, a label, a function
  int64_t value = 0;      ///< of an integer; beside a name, an offset
  uint8_t floatBits = 0;  ///< 32 for 0fXXXXXXXX, whose bits are `value`
  double number = 0;      ///< of another float
  std::vector<Operand> parts; ///< of a list, an address's coordinates; d|p
};

/// Where a statement is in the text, and in what the text was made from.
struct Place {
  uint32_t line = 0;
  uint32_t file = 0, sourceLine = 0; ///< of .loc; 0 where there is none
};

struct Statement {
  std::string_view opcode; ///< "add.rn.f32"
  std::string_view guard;  ///< a predicate; empty where there is none
  bool isGuardNegated = false;
  std::vector<Operand> operands;
  uint32_t scope = 0;
  Place place;
};

/// An initialiser of `bytes` bytes: a number, or a symbol's address.
struct Initial {
  uint64_t offset;
  uint32_t bytes;
  uint64_t value;
  std::string_view symbol;
};

struct Variable {
  std::string_view name;
  Space space = Space::Global;
  Scalar type = Scalar::B8;
  uint64_t bytes = 0; ///< 0 of an array without an extent
  uint32_t align = 1;
  uint32_t scope = 0;
  bool isExtern = false, isRegister = false, isUnsized = false;
  uint8_t vector = 1; ///< elements of .v2 and .v4
  std::vector<Initial> initial;
  uint32_t line = 0;
};

/// ".reg .b32 %r<12>": %r0 to %r11.
struct RegisterRange {
  uint32_t count;
  Scalar type;
  uint8_t vector;
};

struct Scope {
  uint32_t parent = 0; ///< itself for the outermost of a function
  std::map<std::string_view, RegisterRange> ranges;
  std::map<std::string_view, uint32_t> variables; ///< in Function::variables
  std::map<std::string_view, uint32_t> labels;    ///< to a statement
};

struct Function {
  std::string_view name;
  bool isEntry = false, hasBody = false;
  std::vector<uint32_t> parameters, results; ///< in `variables`
  std::vector<Variable> variables;
  std::vector<Scope> scopes;
  std::vector<Statement> statements;
  /// Labels and functions of .branchtargets and .calltargets.
  std::map<std::string_view, std::vector<std::string_view>> targets;
  std::map<std::string_view, uint32_t> prototypes; ///< parameters of each
  uint32_t maxThreads = 0;                         ///< of .maxntid, all axes
  uint32_t needed[3] = {0, 0, 0};                  ///< .reqntid
  uint32_t cluster[3] = {0, 0, 0};                 ///< .reqnctapercluster
  uint32_t line = 0;
};

struct Module {
  std::shared_ptr<const std::string> text;
  uint32_t addressBits = 64;
  std::string target; ///< "sm_90a"
  std::vector<Variable> variables;
  std::vector<Function> functions;
  std::map<std::string_view, uint32_t> variableNames, functionNames;
  std::map<uint32_t, std::string> files; ///< of .file
};

/// Invalid, with the line, for what is not PTX (section 4).
Result<Module> parse(std::string text);

} // namespace mgpu::kernels::ptx

#endif // MGPU_KERNELS_PTX_SYNTAX_H
