// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_KERNELS_PTX_DECODER_H
#define MGPU_KERNELS_PTX_DECODER_H

// Statements to records. The function of an Operation takes the modifiers and
// operands that it knows; what it leaves is an error, and so is what does not
// fit: the first that happens is kept, and all later calls do nothing.

#include "kernels/ptx/PtxProgram.h"

#include <fmt/format.h>
#include <set>

namespace mgpu::kernels::ptx {

class Decoder {
public:
  Decoder(std::shared_ptr<const Module> module, Program &program)
      : module(*module), program(program),
        hasProducts(module->text->find("wgmma.") != std::string::npos) {
    program.module = module;
  }
  Result<void> run(const Function &entry);

  //===-- the statement ---------------------------------------------------===//
  /// The next words behind the name, in whatever order: true once each.
  bool has(std::string_view modifier);
  /// The one of these that is there; the first of them if it may be absent.
  /// The number in `words` of one that is there; none where none is.
  std::optional<uint32_t>
  placeOf(std::initializer_list<std::string_view> words);
  std::string_view oneOf(std::initializer_list<std::string_view> words,
                         bool mayBeAbsent = true);
  /// The next type among the modifiers. An error where there is none.
  Scalar type();
  std::optional<Scalar> typeIfAny();
  bool hasAnother(std::string_view modifier) const;
  Space space();
  size_t numOperands() const { return statement->operands.size(); }
  const Operand *operand(size_t k);
  void refuse(std::string why, ErrorKind kind = ErrorKind::Invalid);
  bool isWrong() const { return error.has_value(); }

  //===-- operands --------------------------------------------------------===//
  /// A register or constant that is read as `type`; `k` counts operands.
  uint32_t source(size_t k, Scalar type) { return sourceOf(operand(k), type); }
  uint32_t sourceOf(const Operand *operand, Scalar type);
  /// A predicate; `isNegated` is the caller's affair.
  uint32_t predicate(const Operand *operand, bool &isNegated);
  /// A register that is written; `_` is one that nobody reads.
  uint32_t target(size_t k, Scalar type) { return targetOf(operand(k), type); }
  uint32_t targetOf(const Operand *operand, Scalar type);
  /// A register of any width, for ld, st, cvt: it may be wider than the type.
  uint32_t wide(const Operand *operand, Scalar type, Scalar &found,
                bool isTarget);
  /// The type a register was declared with; nothing for what is none.
  std::optional<Scalar> declared(const Operand *operand);
  /// Sets instr.a, offset, space and flags from an address.
  void address(size_t k, Space space);
  /// An address as words for Warp::addressesAt(), where an instruction has
  /// several; gives the first.
  uint32_t addressAt(size_t k, Space space);
  uint32_t constant(uint64_t bits, bool isWide);
  uint64_t integer(size_t k);
  bool isInteger(size_t k);
  uint32_t word(uint32_t value);
  /// The first of some words.
  uint32_t words(const std::vector<uint32_t> &values);
  void emit(Run run);

  //===-- control ---------------------------------------------------------===//
  /// Makes `instr.d` the first instruction of a label or function, later.
  /// `word`: makes that one of Program::words so.
  void jumpTo(std::string_view label, std::optional<uint32_t> word = {});
  void callTo(std::string_view function);
  /// The variable that an operand names, as the space that it is in.
  struct Location {
    Space space;
    uint64_t offset, bytes;
  };
  std::optional<Location> locate(const Operand &operand);
  const Function *functionNamed(std::string_view name) const;
  uint32_t functionNumber(std::string_view name);
  /// Where the register of returns of a function is.
  uint32_t returnPlace(const Function &function);
  uint32_t ownReturnPlace() { return returnPlace(*function); }
  /// The condition code's predicate (section 9.7.2).
  uint32_t carryPlace() {
    return carry == noPlace ? carry = allocate(4) : carry;
  }
  Location parameterOf(const Function &function, bool isResult, size_t k);
  Location temporary(uint32_t bytes);
  /// A register of the outermost scope of another function.
  uint32_t registerOf(const Function &function, std::string_view name);
  void touches(uint32_t bytes) {
    program.granule = std::min(program.granule, std::max(bytes, 1u));
  }

  const Module &module;
  Program &program;
  Instr instr;
  const Statement *statement = nullptr;
  const Function *function = nullptr;
  const bool hasProducts; ///< of warpgroups

private:
  struct Register {
    Scalar type;
    uint32_t place;
  };
  using Key = std::pair<const void *, std::string_view>;

  void decode(const Statement &statement);
  void decodeFunction(const Function &function);
  void layoutVariables();
  void orderCalls(const Function &function, size_t depth);
  void watchProducts();
  void scan(const Operand &operand);
  uint32_t allocate(uint32_t bytesOfLane);
  std::optional<Register> find(std::string_view name);
  std::optional<Register> special(std::string_view name);
  Location place(const void *owner, const Variable &variable, bool isKernel);
  uint64_t symbolValue(const Operand &operand, bool &isKnown);
  uint32_t dynamicShared();

  std::vector<std::pair<std::string_view, bool>> modifiers;
  std::vector<uint32_t> touched, written; ///< registers of the statement
  std::vector<std::pair<std::vector<uint32_t>, std::vector<uint32_t>>>
      touchedBy; ///< of each instruction, where there are wgmma
  std::optional<Error> error;
  std::map<Key, Register> registers;
  std::map<std::string_view, Register> specials;
  std::map<std::pair<uint64_t, bool>, uint32_t> constants;
  std::map<Key, Location> locations;
  std::map<const Function *, uint32_t> returns, firsts;
  std::map<const Function *, uint32_t> numbers;
  std::vector<const Function *> called;
  std::set<const Function *> finished, open;
  struct Jump {
    size_t at;
    const Function *function;
    uint32_t statement;
    bool isWord; ///< in Program::words, not an instruction's d
  };
  std::vector<Jump> jumps;
  std::vector<uint32_t> statementAt; ///< first instruction of each, of function
  uint32_t fileBytes = 0, carry = noPlace, dynamicStart = noPlace;
};

} // namespace mgpu::kernels::ptx

#endif // MGPU_KERNELS_PTX_DECODER_H
