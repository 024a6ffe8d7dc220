// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/ptx/Decoder.h"

#include "kernels/ptx/Opcodes.h"
#include "kernels/ptx/WarpgroupProducts.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>

namespace mgpu::kernels::ptx {

//===----------------------------------------------------------------------===//
// Modifiers (section 4.3.2)
//===----------------------------------------------------------------------===//

void Decoder::refuse(std::string why, ErrorKind kind) {
  if (error)
    return;
  error = Error{kind,
                fmt::format("kernel '{}', PTX line {}: '{}': {}", program.entry,
                            statement ? statement->place.line : 0,
                            statement ? statement->opcode : "", why),
                ""};
}

bool Decoder::has(std::string_view modifier) {
  for (auto &[word, isTaken] : modifiers)
    if (!isTaken && word == modifier)
      return isTaken = true;
  return false;
}

bool Decoder::hasAnother(std::string_view modifier) const {
  return std::any_of(modifiers.begin(), modifiers.end(), [&](auto &each) {
    return !each.second && each.first == modifier;
  });
}

std::optional<uint32_t>
Decoder::placeOf(std::initializer_list<std::string_view> words) {
  std::optional<uint32_t> found;
  for (uint32_t k = 0; k < words.size(); ++k)
    if (has(words.begin()[k]))
      found = k;
  return found;
}

std::string_view Decoder::oneOf(std::initializer_list<std::string_view> words,
                                bool mayBeAbsent) {
  for (std::string_view word : words)
    if (has(word))
      return word;
  if (!mayBeAbsent)
    refuse("a modifier is missing, or is one that is not executed",
           ErrorKind::Unsupported);
  return *words.begin();
}

std::optional<Scalar> Decoder::typeIfAny() {
  for (auto &[word, isTaken] : modifiers)
    if (!isTaken)
      if (const auto found = scalarNamed(word)) {
        isTaken = true;
        return found;
      }
  return std::nullopt;
}

Scalar Decoder::type() {
  if (const auto found = typeIfAny())
    return *found;
  refuse("it has no type");
  return Scalar::B32;
}

Space Decoder::space() {
  constexpr std::pair<std::string_view, Space> names[] = {
      {"global", Space::Global},      {"shared", Space::Shared},
      {"shared::cta", Space::Shared}, {"shared::cluster", Space::Shared},
      {"local", Space::Local},        {"param", Space::Param},
      {"param::entry", Space::Param}, {"param::func", Space::Param},
      {"const", Space::Const}};
  for (const auto &[name, space] : names)
    if (has(name))
      return space;
  return Space::Generic;
}

//===----------------------------------------------------------------------===//
// Registers (sections 5.1.1, 6 and 10)
//===----------------------------------------------------------------------===//

const Operand *Decoder::operand(size_t k) {
  if (k < statement->operands.size())
    return &statement->operands[k];
  refuse("an operand is missing");
  return nullptr;
}

uint32_t Decoder::allocate(uint32_t bytesOfLane) {
  constexpr uint32_t mostBytes = 64 << 20;
  const uint32_t place = fileBytes;
  if (fileBytes > mostBytes) {
    refuse("the kernel has more registers than are supported",
           ErrorKind::Unsupported);
    return 0;
  }
  fileBytes += std::max<uint32_t>(bytesOfLane * lanes, 64);
  return place;
}

std::optional<Decoder::Register> Decoder::find(std::string_view name) {
  std::string_view base = name;
  uint32_t element = 0;
  const size_t dot = name.rfind('.');
  constexpr std::string_view letters = "xyzwrgba";
  if (dot != name.npos && dot + 2 == name.size() &&
      letters.find(name.back()) != letters.npos) {
    base = name.substr(0, dot);
    element = uint32_t(letters.find(name.back()) % 4);
  }
  const size_t digits = base.find_last_not_of("0123456789") + 1;
  uint64_t number = 0;
  const bool isNumbered =
      digits < base.size() && digits > 0 &&
      (base[digits] != '0' || digits + 1 == base.size()) &&
      std::from_chars(base.data() + digits, base.data() + base.size(), number)
              .ec == std::errc();
  for (uint32_t scope = statement->scope;;) {
    const Scope &at = function->scopes[scope];
    std::optional<std::pair<Scalar, uint8_t>> found;
    if (const auto v = at.variables.find(base); v != at.variables.end()) {
      const Variable &variable = function->variables[v->second];
      if (!variable.isRegister)
        return std::nullopt;
      found.emplace(variable.type, variable.vector);
    } else if (isNumbered) {
      const auto range = at.ranges.find(base.substr(0, digits));
      if (range != at.ranges.end() && number < range->second.count)
        found.emplace(range->second.type, range->second.vector);
    }
    if (found) {
      if (element >= found->second || (found->second > 1 && base == name))
        return std::nullopt;
      const auto [type, vector] = *found;
      auto [place, isNew] =
          registers.try_emplace({&at, base}, Register{type, 0});
      const uint32_t each = type == Scalar::Pred ? 2 : cellBytes(type);
      if (isNew)
        place->second.place = allocate(each * vector);
      const uint32_t at = place->second.place + element * each * lanes;
      touched.push_back(at);
      return Register{type, at};
    }
    if (at.parent == scope)
      break;
    scope = at.parent;
  }
  return special(name);
}

std::optional<Decoder::Register> Decoder::special(std::string_view name) {
  if (name.size() < 2 || name[0] != '%')
    return std::nullopt;
  if (const auto known = specials.find(name); known != specials.end())
    return known->second;
  std::string_view base = name;
  uint32_t axis = 0;
  const size_t dot = name.rfind('.');
  if (dot != name.npos && dot + 2 == name.size() && name.back() >= 'w') {
    base = name.substr(0, dot);
    axis = name.back() == 'w' ? 3 : uint32_t(name.back() - 'x');
  }
  struct Row {
    std::string_view name;
    Special special;
    bool hasAxes, isWide;
  };
  using S = Special;
  constexpr Row rows[] = {
      {"%tid", S::TidX, true, false},
      {"%ntid", S::NtidX, true, false},
      {"%ctaid", S::CtaidX, true, false},
      {"%nctaid", S::NctaidX, true, false},
      {"%clusterid", S::ClusteridX, true, false},
      {"%nclusterid", S::NclusteridX, true, false},
      {"%cluster_ctaid", S::ClusterCtaidX, true, false},
      {"%cluster_nctaid", S::ClusterNctaidX, true, false},
      {"%laneid", S::LaneId, false, false},
      {"%warpid", S::WarpId, false, false},
      {"%nwarpid", S::NwarpId, false, false},
      {"%smid", S::SmId, false, false},
      {"%nsmid", S::NsmId, false, false},
      {"%gridid", S::GridId, false, true},
      {"%lanemask_eq", S::MaskEq, false, false},
      {"%lanemask_lt", S::MaskLt, false, false},
      {"%lanemask_le", S::MaskLe, false, false},
      {"%lanemask_gt", S::MaskGt, false, false},
      {"%lanemask_ge", S::MaskGe, false, false},
      {"%cluster_ctarank", S::ClusterCtarank, false, false},
      {"%cluster_nctarank", S::ClusterNctarank, false, false},
      {"%is_explicit_cluster", S::ExplicitCluster, false, false},
      {"%dynamic_smem_size", S::DynamicShared, false, false},
      {"%total_smem_size", S::TotalShared, false, false},
      {"%clock", S::Clock, false, false},
      {"%clock_hi", S::Zero, false, false},
      {"%clock64", S::Clock64, false, true},
      {"%globaltimer", S::GlobalTimer, false, true},
      {"%globaltimer_lo", S::Clock, false, false},
      {"%globaltimer_hi", S::Zero, false, false}};
  for (const Row &row : rows) {
    if (row.name != base || (base != name) != row.hasAxes)
      continue;
    const bool isPredicate = row.special == S::ExplicitCluster;
    Register found{isPredicate  ? Scalar::Pred
                   : row.isWide ? Scalar::U64
                                : Scalar::U32,
                   allocate(row.isWide ? 8 : 4)};
    program.specials.emplace_back(
        axis == 3 ? S::Zero : S(uint32_t(row.special) + axis), found.place);
    specials.emplace(name, found);
    return found;
  }
  return std::nullopt;
}

uint32_t Decoder::constant(uint64_t bits, bool isWide) {
  auto [place, isNew] = constants.try_emplace({bits, isWide}, 0);
  if (isNew) {
    place->second = allocate(isWide ? 8 : 4);
    if (isWrong())
      return 0;
    program.file.resize(fileBytes);
    for (uint32_t lane = 0; lane < lanes; ++lane)
      std::memcpy(program.file.data() + place->second + lane * (isWide ? 8 : 4),
                  &bits, isWide ? 8 : 4);
  }
  return place->second;
}

std::optional<Scalar> Decoder::declared(const Operand *operand) {
  if (!operand || operand->kind != Operand::Kind::Name)
    return std::nullopt;
  const auto found = find(operand->name);
  return found ? std::optional(found->type) : std::nullopt;
}

/// Not one of wide's: nothing that is wider.
uint32_t Decoder::sourceOf(const Operand *operand, Scalar type) {
  Scalar found = type;
  const uint32_t place = wide(operand, type, found, false);
  // Special registers are read as narrower ones by old texts.
  const bool isSpecial = operand && specials.count(operand->name) != 0;
  if (!isWrong() && !agrees(type, found) &&
      !(isSpecial && bytesOf(type) < bytesOf(found)))
    refuse(fmt::format("the operand '{}' is of type {}, and {} is needed",
                       operand->name, nameOf(found), nameOf(type)));
  return place;
}

uint32_t Decoder::targetOf(const Operand *operand, Scalar type) {
  Scalar found = type;
  const uint32_t place = wide(operand, type, found, true);
  if (!isWrong() && !agrees(type, found))
    refuse(fmt::format("'{}' is of type {}, and the result is {}",
                       operand->name, nameOf(found), nameOf(type)));
  return place;
}

uint32_t Decoder::wide(const Operand *operand, Scalar type, Scalar &found,
                       bool isTarget) {
  if (isWrong() || !operand)
    return 0;
  found = type;
  const bool isWide = cellBytes(type) >= 8;
  if (operand->kind == Operand::Kind::Sink && isTarget)
    return allocate(std::max(cellBytes(type), 8u));
  if (operand->kind == Operand::Kind::Name) {
    if (const auto known = find(operand->name)) {
      if (operand->value != 0 || (isTarget && specials.count(operand->name)))
        refuse(fmt::format("'{}' cannot be used so", operand->name));
      found = known->type;
      if (isTarget)
        written.push_back(known->place);
      return known->place;
    }
    bool isKnown = false;
    const uint64_t value = symbolValue(*operand, isKnown);
    if (isKnown && !isTarget && cellBytes(type) <= 8)
      return constant(isWide ? value : uint32_t(value), isWide);
    refuse(fmt::format("'{}' is not declared", operand->name));
    return 0;
  }
  if (isTarget ||
      (operand->kind != Operand::Kind::Integer &&
       operand->kind != Operand::Kind::Float) ||
      cellBytes(type) > 8) {
    refuse("an operand is of a kind that does not fit");
    return 0;
  }
  auto bits = uint64_t(operand->value);
  if (operand->kind == Operand::Kind::Float && operand->floatBits == 0)
    bits = bytesOf(type) == 4 ? std::bit_cast<uint32_t>(float(operand->number))
                              : std::bit_cast<uint64_t>(operand->number);
  else if (operand->kind == Operand::Kind::Float && operand->floatBits == 32 &&
           type == Scalar::F64)
    bits = std::bit_cast<uint64_t>(
        double(std::bit_cast<float>(uint32_t(operand->value))));
  if (operand->kind == Operand::Kind::Integer && type == Scalar::F32)
    bits = std::bit_cast<uint32_t>(float(operand->value));
  if (operand->kind == Operand::Kind::Integer && type == Scalar::F64)
    bits = std::bit_cast<uint64_t>(double(operand->value));
  const uint32_t width = bytesOf(type) * 8;
  if (width < 64)
    bits &= (uint64_t(1) << width) - 1;
  if (type == Scalar::Pred)
    return constant(operand->value ? allLanes : 0, false);
  return constant(bits, isWide);
}

uint32_t Decoder::predicate(const Operand *operand, bool &isNegated) {
  isNegated = operand && operand->isNegated;
  return sourceOf(operand, Scalar::Pred);
}

bool Decoder::isInteger(size_t k) {
  return k < numOperands() &&
         statement->operands[k].kind == Operand::Kind::Integer;
}

uint64_t Decoder::integer(size_t k) {
  const Operand *found = operand(k);
  if (found && found->kind != Operand::Kind::Integer)
    refuse("an operand must be a constant");
  return found ? uint64_t(found->value) : 0;
}

uint32_t Decoder::word(uint32_t value) {
  program.words.push_back(value);
  return uint32_t(program.words.size() - 1);
}

uint32_t Decoder::words(const std::vector<uint32_t> &values) {
  const auto first = uint32_t(program.words.size());
  program.words.insert(program.words.end(), values.begin(), values.end());
  return first;
}

void Decoder::emit(Run run) {
  if (isWrong())
    return;
  if (!run) {
    refuse("it is not executed for these types", ErrorKind::Unsupported);
    return;
  }
  instr.run = run;
  program.code.push_back(instr);
  program.places.push_back(statement->place);
  if (hasProducts)
    touchedBy.emplace_back(touched, written);
}

//===----------------------------------------------------------------------===//
// Statements
//===----------------------------------------------------------------------===//

void Decoder::decode(const Statement &from) {
  statement = &from;
  instr = {};
  modifiers.clear();
  touched.clear();
  written.clear();
  std::string_view rest = from.opcode;
  const std::string_view name = rest.substr(0, rest.find('.'));
  rest.remove_prefix(name.size());
  while (!rest.empty()) {
    rest.remove_prefix(1);
    const std::string_view word = rest.substr(0, rest.find('.'));
    rest.remove_prefix(word.size());
    modifiers.emplace_back(word, false);
  }
  if (!from.guard.empty()) {
    Operand guard;
    guard.name = from.guard;
    instr.guard = sourceOf(&guard, Scalar::Pred);
    instr.isGuardNegated = from.isGuardNegated;
  }
  const auto found = operations().find(name);
  if (found == operations().end()) {
    refuse("the instruction is not executed", ErrorKind::Unsupported);
    return;
  }
  found->second.decode(*this);
  for (const auto &[word, isTaken] : modifiers)
    if (!isTaken)
      refuse(fmt::format("'.{}' of it is not executed", word),
             ErrorKind::Unsupported);
}

void Decoder::decodeFunction(const Function &of) {
  function = &of;
  firsts[&of] = uint32_t(program.code.size());
  statementAt.assign(of.statements.size() + 1, 0);
  const size_t firstJump = jumps.size();
  for (size_t k = 0; k < of.statements.size() && !error; ++k) {
    statementAt[k] = uint32_t(program.code.size());
    decode(of.statements[k]);
  }
  if (error)
    return;
  statementAt.back() = uint32_t(program.code.size());
  static const Statement end{"ret", {}, false, {}, 0, {}};
  decode(end);
  for (size_t k = firstJump; k < jumps.size(); ++k) {
    const Jump &jump = jumps[k];
    if (jump.function)
      continue;
    const uint32_t to = statementAt[jump.statement];
    (jump.isWord ? program.words[jump.at] : program.code[jump.at].d) = to;
  }
}

void Decoder::jumpTo(std::string_view label, std::optional<uint32_t> word) {
  for (uint32_t scope = statement->scope;;) {
    const Scope &at = function->scopes[scope];
    if (const auto found = at.labels.find(label); found != at.labels.end()) {
      jumps.push_back({word.value_or(program.code.size()), nullptr,
                       found->second, word.has_value()});
      return;
    }
    if (at.parent == scope)
      break;
    scope = at.parent;
  }
  refuse(fmt::format("there is no label '{}' here", label));
}

void Decoder::callTo(std::string_view name) {
  const Function *to = functionNamed(name);
  if (!to || to->isEntry || !to->hasBody) {
    refuse(fmt::format("the function '{}' is not defined in this text", name));
    return;
  }
  jumps.push_back({program.code.size(), to, 0, false});
}

/// Functions whose calls are within each other have registers of their own,
/// which a function that calls itself would need anew each time.
void Decoder::orderCalls(const Function &of, size_t depth) {
  if (finished.count(&of) || error)
    return;
  if (!open.insert(&of).second || depth > 200) {
    statement = nullptr;
    refuse(fmt::format("the function '{}' calls itself, which is not supported",
                       of.name),
           ErrorKind::Unsupported);
    return;
  }
  for (const Statement &each : of.statements)
    for (const Operand &operand : each.operands) {
      function = &of;
      statement = &each;
      scan(operand);
      if (operand.kind == Operand::Kind::Name)
        if (const Function *to = functionNamed(operand.name);
            to && to->hasBody && !to->isEntry)
          orderCalls(*to, depth + 1);
    }
  open.erase(&of);
  finished.insert(&of);
  called.push_back(&of);
}

/// Who touches registers of products of warpgroups asks first whether it may.
void Decoder::watchProducts() {
  for (uint32_t pc = 0; pc < touchedBy.size(); ++pc) {
    Watched watch;
    auto take = [&](const std::vector<uint32_t> &places,
                    std::vector<uint32_t> &into) {
      for (uint32_t place : places)
        if (const auto found = program.productRegisters.find(place);
            found != program.productRegisters.end())
          into.push_back(found->second);
    };
    take(touchedBy[pc].first, watch.touched);
    take(touchedBy[pc].second, watch.written);
    Run &run = program.code[pc].run;
    if (watch.touched.empty() || isProduct(run))
      continue;
    watch.run = std::exchange(run, touchWatched);
    program.watched.emplace(pc, std::move(watch));
  }
}

Result<void> Decoder::run(const Function &entry) {
  layoutVariables();
  uint32_t offset = 0;
  for (uint32_t k : entry.parameters) {
    const Variable &variable = entry.variables[k];
    offset = (offset + variable.align - 1) / variable.align * variable.align;
    program.parameters.push_back(
        {offset, uint32_t(variable.bytes), std::string(variable.name)});
    locations[{&entry, variable.name}] = {Space::Param, offset, variable.bytes};
    offset += uint32_t(variable.bytes);
    if (offset > 32764) { // section 4.6.1 of the tuning: of sm_70 and later
      statement = nullptr;
      refuse("the parameters take more than 32764 bytes");
    }
  }
  program.parameterBytes = offset;
  orderCalls(entry, 0);
  std::reverse(called.begin(), called.end()); // the entry comes first
  for (const Function *each : called)
    if (!error)
      decodeFunction(*each);
  if (error)
    return fail(std::move(*error));
  for (const Jump &jump : jumps)
    if (jump.function)
      program.code[jump.at].d = firsts.at(jump.function);
  watchProducts();
  program.functions.resize(numbers.size());
  for (const auto &[of, number] : numbers)
    program.functions[number] = firsts.count(of) ? firsts[of] : noPlace;
  program.file.resize(fileBytes);
  program.maxThreads = entry.maxThreads;
  std::copy_n(entry.needed, 3, program.needed.begin());
  std::copy_n(entry.cluster, 3, program.cluster.begin());
  return {};
}

Result<Program> decode(std::shared_ptr<const Module> module,
                       std::string_view entry) {
  const Function *found = nullptr;
  std::string names;
  for (const Function &each : module->functions)
    if (each.isEntry && each.hasBody && (entry.empty() || each.name == entry)) {
      if (found)
        return fail(ErrorKind::Usage,
                    "the PTX has several entries: name one of them");
      found = &each;
    } else if (each.isEntry) {
      names += fmt::format(" '{}'", each.name);
    }
  if (!found)
    return fail(ErrorKind::Invalid,
                fmt::format("the PTX has no entry '{}': it has{}", entry,
                            names.empty() ? " none" : names));
  Program program;
  program.entry = found->name;
  Decoder decoder(module, program);
  MGPU_TRY(decoder.run(*found));
  return program;
}

} // namespace mgpu::kernels::ptx
