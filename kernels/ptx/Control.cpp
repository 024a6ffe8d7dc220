// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/ptx/Elements.h"
#include "kernels/ptx/Opcodes.h"
#include "kernels/ptx/Printf.h"

// Control flow (ISA 9.0, sections 9.7.12 and 9.7.19).

namespace mgpu::kernels::ptx {

namespace {

void jump(Warp &warp, const Instr &i) { warp.branch(i.d, warp.mask); }

/// Lanes go where each says; `target(lane)` is an instruction.
template <typename Target>
void jumpEach(Warp &warp, Target target) {
  uint32_t left = warp.mask;
  while (left) {
    const uint32_t to = target(uint32_t(std::countr_zero(left)));
    uint32_t together = 0;
    for (uint32_t lane = 0; lane < lanes; ++lane)
      if ((left >> lane & 1) && target(lane) == to)
        together |= 1u << lane;
    left &= ~together;
    if (to >= warp.machine.program.code.size()) {
      warp.mask = together;
      return warp.fail("a jump to what is no instruction");
    }
    warp.branch(to, together);
  }
}

/// brx.idx: `words[more..]` are `offset` targets.
void jumpTable(Warp &warp, const Instr &i) {
  const auto *index = warp.cells<uint32_t>(i.a);
  const uint32_t *targets = &warp.machine.program.words[i.more];
  jumpEach(warp, [&](uint32_t lane) {
    return index[lane] < uint64_t(i.offset) ? targets[index[lane]] : noPlace;
  });
}

void call(Warp &warp, const Instr &i) {
  for (uint32_t lane = 0; lane < lanes; ++lane)
    if (warp.mask >> lane & 1)
      warp.cells<uint32_t>(i.a)[lane] = warp.pc + 1;
  warp.branch(i.d, warp.mask);
}

void returnEach(Warp &warp, const Instr &i) {
  const auto *to = warp.cells<uint32_t>(i.a);
  jumpEach(warp, [&](uint32_t lane) { return to[lane]; });
}

void end(Warp &warp, const Instr &) { warp.exit(warp.mask); }
void trap(Warp &warp, const Instr &) { warp.fail("the kernel traps"); }
void nothing(Warp &, const Instr &) {}

void decodeBranch(Decoder &d) {
  d.has("uni");
  const Operand *target = d.operand(0);
  if (!target)
    return;
  d.jumpTo(target->name);
  d.emit(jump);
}

void decodeBranchTable(Decoder &d) {
  d.has("idx");
  d.has("uni");
  d.instr.a = d.source(0, Scalar::U32);
  const Operand *list = d.operand(1);
  if (!list)
    return;
  const auto found = d.function->targets.find(list->name);
  if (found == d.function->targets.end())
    return d.refuse("its list of targets is not declared");
  d.instr.more = uint32_t(d.program.words.size());
  d.instr.offset = int64_t(found->second.size());
  for (std::string_view label : found->second) {
    d.jumpTo(label, d.word(0));
  }
  d.emit(jumpTable);
}

/// A copy of a parameter within local memory.
void copyLocal(Warp &warp, const Instr &i) {
  const uint64_t size = warp.machine.program.localBytes;
  for (uint32_t lane = 0; lane < lanes; ++lane)
    if (warp.mask >> lane & 1) {
      std::byte *own = warp.block.local.data() +
                       (uint64_t(warp.index) * lanes + lane) * size;
      std::memmove(own + i.d, own + i.a, uint64_t(i.offset));
    }
}

void emitCopy(Decoder &d, const Decoder::Location &to,
              const Decoder::Location &from) {
  const Instr kept = d.instr;
  d.instr.d = uint32_t(to.offset);
  d.instr.a = uint32_t(from.offset);
  d.instr.offset = int64_t(std::min(to.bytes, from.bytes));
  d.emit(copyLocal);
  d.instr = kept;
}

/// Between a register and local memory.
template <bool isResult>
void transfer(Warp &warp, const Instr &i) {
  const uint64_t size = warp.machine.program.localBytes;
  const uint32_t cell = std::max<uint32_t>(i.bytes, 4);
  for (uint32_t lane = 0; lane < lanes; ++lane)
    if (warp.mask >> lane & 1) {
      std::byte *own = warp.block.local.data() +
                       (uint64_t(warp.index) * lanes + lane) * size + i.d;
      std::byte *at = warp.file + i.a + lane * cell;
      if (isResult)
        std::memcpy(at, own, i.bytes);
      else
        std::memcpy(own, at, i.bytes);
    }
}

} // namespace

void emitTransfer(Decoder &d, const Operand &operand,
                  const Decoder::Location &to, bool isResult) {
  const Instr kept = d.instr;
  const Scalar type = to.bytes >= 8   ? Scalar::B64
                      : to.bytes == 4 ? Scalar::B32
                      : to.bytes == 2 ? Scalar::B16
                                      : Scalar::B8;
  Scalar found = type;
  d.instr.d = uint32_t(to.offset);
  d.instr.a = d.wide(&operand, type, found, isResult);
  d.instr.bytes = uint8_t(std::min<uint64_t>(to.bytes, bytesOf(found)));
  if (to.bytes > 8 || found == Scalar::Pred)
    return d.refuse("an argument does not fit its parameter");
  d.emit(isResult ? transfer<true> : transfer<false>);
  d.instr = kept;
}

namespace {

/// Arguments are .param variables, or registers where the parameter is one.
void passValue(Decoder &d, const Operand &operand, const Function &callee,
               bool isResult, size_t k) {
  const std::vector<uint32_t> &list =
      isResult ? callee.results : callee.parameters;
  if (k < list.size() && callee.variables[list[k]].isRegister) {
    const Scalar type = callee.variables[list[k]].type;
    const uint32_t own =
        isResult ? d.targetOf(&operand, type) : d.sourceOf(&operand, type);
    const uint32_t other = d.registerOf(callee, callee.variables[list[k]].name);
    const Instr kept = d.instr;
    d.instr.d = isResult ? own : other;
    d.instr.a = isResult ? other : own;
    d.emit(cellBytes(type) == 8 ? one<Same, uint64_t>()
                                : one<Same, uint32_t>());
    d.instr = kept;
    return;
  }
  const Decoder::Location inside = d.parameterOf(callee, isResult, k);
  const auto outside = d.locate(operand);
  if (outside && outside->space == Space::Local)
    isResult ? emitCopy(d, *outside, inside) : emitCopy(d, inside, *outside);
  else
    emitTransfer(d, operand, inside, isResult);
}

void decodeCall(Decoder &d) {
  d.has("uni");
  const auto &operands = d.statement->operands;
  using Kind = Operand::Kind;
  size_t at = operands.size() > 1 && operands[0].kind == Kind::Group ? 1 : 0;
  const Operand *name = d.operand(at);
  if (!name)
    return;
  static const Operand empty{Kind::Group, false, {}, 0, 0, 0, {}};
  const Operand &results = at ? operands[0] : empty;
  const Operand &arguments =
      at + 1 < operands.size() && operands[at + 1].kind == Kind::Group
          ? operands[at + 1]
          : empty;
  if (const Run run = systemCall(name->name))
    return decodeSystemCall(d, run, results, arguments);
  const Function *callee = d.functionNamed(name->name);
  if (!callee)
    return d.refuse("an indirect call is not executed", ErrorKind::Unsupported);
  for (size_t k = 0; k < arguments.parts.size(); ++k)
    passValue(d, arguments.parts[k], *callee, false, k);
  d.callTo(name->name);
  d.instr.a = d.returnPlace(*callee);
  d.emit(call);
  for (size_t k = 0; k < results.parts.size(); ++k)
    passValue(d, results.parts[k], *callee, true, k);
}

void decodeReturn(Decoder &d) {
  d.has("uni");
  if (d.function->isEntry)
    return d.emit(end);
  d.instr.a = d.ownReturnPlace();
  d.emit(returnEach);
}

void decodeNanosleep(Decoder &d) {
  d.type();
  d.source(0, Scalar::U32);
  d.emit(nothing);
}

} // namespace

std::span<const Operation> controlOperations() {
  static const Operation rows[] = {
      {"bra", "9.7.12.3", decodeBranch},
      {"brx", "9.7.12.4", decodeBranchTable},
      {"call", "9.7.12.5", decodeCall},
      {"ret", "9.7.12.6", decodeReturn},
      {"exit", "9.7.12.7", [](Decoder &d) { d.emit(end); }},
      {"nanosleep", "9.7.19.2", decodeNanosleep},
      {"pmevent", "9.7.19.3",
       [](Decoder &d) {
         d.has("mask");
         d.emit(nothing);
       }},
      {"setmaxnreg", "9.7.19.5",
       [](Decoder &d) {
         for (std::string_view word : {"inc", "dec", "sync", "aligned"})
           d.has(word);
         d.type();
         const uint64_t count = d.integer(0);
         if (count < 24 || count > 256 || count % 8)
           return d.refuse("it takes 24 to 256 registers, by 8");
         d.emit(nothing);
       }},
      {"trap", "9.7.19.4", [](Decoder &d) { d.emit(trap); }},
      {"brkpt", "9.7.19.1", [](Decoder &d) { d.emit(trap); }}};
  return rows;
}

} // namespace mgpu::kernels::ptx
