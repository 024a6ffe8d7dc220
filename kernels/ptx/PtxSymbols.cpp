// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/ptx/Decoder.h"

#include <cstring>
#include <utility>

// Where variables, parameters and functions are (ISA 9.0, sections 5.1, 5.4 and
// 7.1).

namespace mgpu::kernels::ptx {

static uint64_t aligned(uint64_t offset, uint64_t align) {
  return (offset + align - 1) / align * align;
}

const Function *Decoder::functionNamed(std::string_view name) const {
  const auto found = module.functionNames.find(name);
  return found == module.functionNames.end() ? nullptr
                                             : &module.functions[found->second];
}

uint32_t Decoder::functionNumber(std::string_view name) {
  const Function *found = functionNamed(name);
  return numbers.try_emplace(found, uint32_t(numbers.size())).first->second;
}

uint32_t Decoder::returnPlace(const Function &of) {
  auto [place, isNew] = returns.try_emplace(&of, 0);
  if (isNew)
    place->second = allocate(4);
  return place->second;
}

/// The variables of all entries have their places, so that launches share them.
void Decoder::layoutVariables() {
  constexpr uint64_t mostBytes = uint64_t(256) << 20;
  uint64_t offset = 16; // no variable is at the window's first byte
  auto layout = [&](const void *owner, const Variable &variable) {
    if (variable.isRegister ||
        (variable.space != Space::Global && variable.space != Space::Const))
      return;
    if (variable.isExtern) {
      return; // an error where it is used
    }
    offset = aligned(offset, variable.align);
    locations[{owner, variable.name}] = {variable.space, offset,
                                         variable.bytes};
    offset += variable.bytes;
  };
  for (const Variable &variable : module.variables)
    layout(nullptr, variable);
  for (const Function &each : module.functions)
    for (const Variable &variable : each.variables)
      layout(&each, variable);
  if (offset > mostBytes) {
    refuse("the module's variables take more than 256 MiB",
           ErrorKind::Unsupported);
    return;
  }
  program.variableBytes = uint32_t(offset);
  program.variables.resize(offset);
  auto fill = [&](const void *owner, const Variable &variable) {
    const auto at = locations.find({owner, variable.name});
    if (at == locations.end() ||
        (variable.space != Space::Global && variable.space != Space::Const))
      return;
    for (const Initial &initial : variable.initial) {
      uint64_t value = initial.value;
      if (!initial.symbol.empty()) {
        const auto other = locations.find({nullptr, initial.symbol});
        if (other != locations.end())
          value += variableWindow | other->second.offset;
        else if (functionNamed(initial.symbol))
          value = functionWindow | functionNumber(initial.symbol);
        else
          refuse(fmt::format("'{}' of an initial value is not defined",
                             initial.symbol));
      }
      if (initial.offset + initial.bytes <= variable.bytes)
        std::memcpy(program.variables.data() + at->second.offset +
                        initial.offset,
                    &value, std::min(initial.bytes, 8u));
    }
  };
  for (const Variable &variable : module.variables)
    fill(nullptr, variable);
  for (const Function &each : module.functions)
    for (const Variable &variable : each.variables)
      fill(&each, variable);
}

/// Shared and local memory, and parameters of functions, get their places where
/// they are used first.
Decoder::Location Decoder::place(const void *owner, const Variable &variable,
                                 bool isDynamic) {
  auto [found, isNew] = locations.try_emplace({owner, variable.name});
  Location &at = found->second;
  if (!isNew)
    return at;
  const bool isShared = variable.space == Space::Shared;
  at.space = isShared ? Space::Shared : Space::Local;
  at.bytes = variable.bytes;
  uint32_t &end = isShared ? program.sharedBytes : program.localBytes;
  const uint64_t first = aligned(end, std::max(variable.align, 1u));
  if (first + at.bytes > (1u << 24)) {
    refuse(fmt::format("'{}' makes shared or local memory larger than 16 MiB",
                       variable.name));
    return at;
  }
  at.offset = first;
  if (!isDynamic)
    end = uint32_t(first + at.bytes);
  return at;
}

/// Where dynamic shared memory begins: behind what is static, which scan() has
/// placed, and no better aligned than the texts ask for.
uint32_t Decoder::dynamicShared() {
  uint32_t align = 16;
  for (const Variable &each : module.variables)
    if (each.space == Space::Shared && each.isExtern)
      align = std::max(align, each.align);
  if (align > 1024) { // a driver aligns no better
    refuse(fmt::format("dynamic shared memory is aligned to {} bytes: 1024 is "
                       "the most",
                       align));
    return 0;
  }
  if (dynamicStart == noPlace) {
    const uint64_t first = aligned(program.sharedBytes, align);
    dynamicStart = uint32_t(first % (2 * align) ? first : first + align);
    program.sharedPadding = dynamicStart - program.sharedBytes;
    program.sharedBytes = dynamicStart;
  }
  return dynamicStart;
}

std::optional<Decoder::Location> Decoder::locate(const Operand &operand) {
  auto fixed = [&](const void *owner) -> std::optional<Location> {
    const auto found = locations.find({owner, operand.name});
    return found == locations.end() ? std::nullopt
                                    : std::optional(found->second);
  };
  for (uint32_t scope = statement->scope;;) {
    const Scope &at = function->scopes[scope];
    const auto found = at.variables.find(operand.name);
    if (found != at.variables.end()) {
      const Variable &variable = function->variables[found->second];
      if (variable.isRegister)
        return std::nullopt;
      if (variable.space == Space::Global || variable.space == Space::Const ||
          (function->isEntry && scope == 0 && variable.space == Space::Param))
        if (auto known = fixed(function))
          return known;
      return place(&at, variable, false);
    }
    if (at.parent == scope)
      break;
    scope = at.parent;
  }
  const auto found = module.variableNames.find(operand.name);
  if (found == module.variableNames.end())
    return std::nullopt;
  const Variable &variable = module.variables[found->second];
  if (variable.space == Space::Shared) {
    const bool isDynamic = variable.isExtern && variable.bytes == 0;
    if (isDynamic)
      return Location{Space::Shared, dynamicShared(), 0};
    return place(nullptr, variable, false);
  }
  if (auto known = fixed(nullptr))
    return known;
  refuse(fmt::format("'{}' is not defined in this text", operand.name));
  return std::nullopt;
}

/// Gives each variable that is named its place, before dynamic shared memory
/// has its own.
void Decoder::scan(const Operand &operand) {
  const bool isNamed = operand.kind == Operand::Kind::Name ||
                       operand.kind == Operand::Kind::Address;
  if (isNamed && !operand.name.empty()) {
    const auto global = module.variableNames.find(operand.name);
    const bool isDynamic = global != module.variableNames.end() &&
                           module.variables[global->second].isExtern;
    if (!isDynamic)
      locate(operand);
  }
  for (const Operand &part : operand.parts)
    scan(part);
}

Decoder::Location Decoder::parameterOf(const Function &of, bool isResult,
                                       size_t k) {
  const std::vector<uint32_t> &list = isResult ? of.results : of.parameters;
  if (k >= list.size()) {
    refuse(fmt::format("the function '{}' has {} of these parameters", of.name,
                       list.size()));
    return {};
  }
  return place(&of.scopes[0], of.variables[list[k]], false);
}

Decoder::Location Decoder::temporary(uint32_t bytes) {
  const uint64_t first = aligned(program.localBytes, 8);
  program.localBytes = uint32_t(first + bytes);
  return {Space::Local, first, bytes};
}

uint32_t Decoder::registerOf(const Function &of, std::string_view name) {
  const Statement *const kept = statement;
  const Function *const own = function;
  const Statement outermost{kept->opcode, {}, false, {}, 0, kept->place};
  statement = &outermost;
  function = &of;
  const auto found = find(name);
  statement = kept;
  function = own;
  return found ? found->place : 0;
}

/// The address of a variable in its space (mov), or of a function.
uint64_t Decoder::symbolValue(const Operand &operand, bool &isKnown) {
  isKnown = true;
  if (const auto at = locate(operand)) {
    const uint64_t offset = at->offset + uint64_t(operand.value);
    if (at->space == Space::Global || at->space == Space::Const)
      return module.addressBits == 32 ? offset | (1u << 31)
                                      : variableWindow | offset;
    return offset;
  }
  if (functionNamed(operand.name))
    return functionWindow | functionNumber(operand.name);
  isKnown = false;
  return 0;
}

void Decoder::address(size_t k, Space space) {
  const Operand *at = operand(k);
  if (!at || isWrong())
    return;
  if (at->kind != Operand::Kind::Address) {
    refuse("an operand must be an address in brackets");
    return;
  }
  instr.space = space;
  instr.offset = at->value;
  instr.a = noPlace;
  if (at->name.empty()) {
    instr.flags |= wideAddress;
    return;
  }
  if (const auto found = find(at->name)) {
    instr.a = found->place;
    const uint32_t bytes = bytesOf(found->type);
    if (found->type == Scalar::Pred || (bytes != 4 && bytes != 8))
      refuse(fmt::format("'{}' cannot be an address", at->name));
    if (bytes == 8)
      instr.flags |= wideAddress;
    return;
  }
  Operand bare = *at;
  bare.value = 0;
  const auto location = locate(bare);
  if (isWrong())
    return;
  if (!location) {
    refuse(fmt::format("'{}' is not declared", at->name));
    return;
  }
  instr.flags |= wideAddress;
  instr.offset += int64_t(location->offset);
  if (location->space == Space::Global || location->space == Space::Const) {
    instr.offset = int64_t(variableWindow | uint64_t(instr.offset));
    instr.space = Space::Global;
  } else {
    instr.space = location->space; // a function's parameters are local
  }
  if (space != Space::Generic && space != location->space &&
      space != Space::Param)
    refuse(fmt::format("'{}' lies in another state space", at->name));
}

uint32_t Decoder::addressAt(size_t k, Space space) {
  const Instr kept = instr;
  instr = {};
  address(k, space);
  const Instr found = std::exchange(instr, kept);
  const uint32_t first = word(found.a);
  for (uint32_t each :
       {found.flags, uint32_t(found.space), uint32_t(uint64_t(found.offset)),
        uint32_t(uint64_t(found.offset) >> 32)})
    word(each);
  return first;
}

} // namespace mgpu::kernels::ptx
