// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pipeline/program/Roles.h"

#include "planner/dag/PlanPart.h"
#include "planner/record/Phases.h"
#include "planner/schedule/ResidentPlan.h"
#include "support/Spelling.h"
#include "support/Units.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <set>

namespace mgpu::pipeline {

using planner::ArgumentRole, planner::Program, planner::ProgramArgument;

static std::vector<std::string> namesOf(const Program &program) {
  std::vector<std::string> names;
  for (const ProgramArgument &argument : program.arguments)
    names.push_back(argument.name);
  return names;
}

static tl::unexpected<Error> noMatch(const Program &program,
                                     std::string_view option,
                                     const std::string &key) {
  std::string word = key;
  std::erase(word, '*');
  const std::vector<std::string> names = namesOf(program);
  constexpr size_t most = 20;
  const std::vector<std::string> first(
      names.begin(), names.begin() + long(std::min(most, names.size())));
  return fail(
      ErrorKind::Usage,
      fmt::format(
          "{} {}: no argument that is an array has that name; "
          "there are: {}{}{}",
          option, key,
          names.empty() ? "none" : fmt::format("{}", fmt::join(first, ", ")),
          names.size() > most ? fmt::format(" and {} more", names.size() - most)
                              : "",
          didYouMean(word, names)));
}

static bool isArray(const ProgramArgument &argument) {
  return argument.buffer && argument.role != ArgumentRole::Dynamic;
}

/// By argument: what a pattern says, if one does.
static Result<std::map<size_t, ArgumentRole>>
rolesOfPatterns(const Program &program, const RoleOptions &options) {
  std::map<size_t, ArgumentRole> roles;
  for (const auto &[pattern, text] : options.rolePatterns) {
    std::optional<ArgumentRole> role;
    for (ArgumentRole each :
         {ArgumentRole::Input, ArgumentRole::Output, ArgumentRole::Resident})
      if (toString(each) == text)
        role = each;
    if (!role)
      return fail(ErrorKind::Usage,
                  fmt::format("--role {}={}: a pattern gives arrays the role "
                              "input, output or resident; name a scalar alone",
                              pattern, text));
    bool isFound = false;
    for (size_t k = 0; k < program.arguments.size(); ++k)
      if (isArray(program.arguments[k]) &&
          matchesPattern(pattern, program.arguments[k].name)) {
        isFound = true;
        roles[k] = *role;
      }
    if (!isFound)
      return noMatch(program, "--role", pattern);
  }
  return roles;
}

/// Makes resident what --resident-except says, of the arguments that have no
/// role of the user's yet.
static Result<void> addResidents(const Program &program,
                                 const RoleOptions &options,
                                 const std::vector<bool> &isWritten,
                                 std::map<size_t, ArgumentRole> &roles) {
  std::set<size_t> excepted;
  for (const std::string &key : *options.residentExcept) {
    bool isFound = false;
    for (size_t k = 0; k < program.arguments.size(); ++k)
      if (key == std::to_string(k) ||
          matchesPattern(key, program.arguments[k].name)) {
        isFound = true;
        excepted.insert(k);
      }
    if (!isFound)
      return noMatch(program, "--resident-except", key);
  }
  for (size_t k = 0; k < program.arguments.size(); ++k) {
    const ProgramArgument &argument = program.arguments[k];
    const bool isNamed = options.roles.contains(argument.name) ||
                         options.roles.contains(std::to_string(k));
    if (isArray(argument) && !argument.shape.empty() && !isNamed &&
        !isWritten[argument.buffer->value] && !excepted.contains(k))
      roles.emplace(k, ArgumentRole::Resident);
  }
  return {};
}

Result<void> applyRoles(Program &program, const RoleOptions &options,
                        MadeResident &made) {
  if (options.rolePatterns.empty() && !options.residentExcept)
    return {};
  MGPU_TRY_ASSIGN(auto roles, rolesOfPatterns(program, options));
  for (size_t k = 0; k < program.arguments.size(); ++k) // a name goes first
    if (options.roles.contains(program.arguments[k].name) ||
        options.roles.contains(std::to_string(k)))
      roles.erase(k);
  const std::vector<bool> isWritten = writtenBuffers(program.dag);
  if (options.residentExcept)
    MGPU_TRY(addResidents(program, options, isWritten, roles));
  for (auto [k, role] : roles) {
    ProgramArgument &argument = program.arguments[k];
    if (role == ArgumentRole::Input && isWritten[argument.buffer->value])
      return fail(ErrorKind::Usage,
                  fmt::format("--role: argument '{}' cannot have role 'input', "
                              "as the program writes it: give it role "
                              "'output', or none",
                              argument.name));
    if (role == ArgumentRole::Resident &&
        argument.role != ArgumentRole::Resident) {
      ++made.arguments;
      made.bytes += program.dag.buffer(*argument.buffer).sizeBytes;
    }
    argument.role = role;
  }
  if (auto replayed = planner::withoutResidents(program.dag))
    program.dag = std::move(*replayed);
  planner::assignPhases(program);
  return {};
}

Result<void> applyRoles(LoadedProgram &program) {
  return applyRoles(program, program.from, program.madeResident);
}

Uploads uploadsOf(const Program &program, std::span<const double> durationsUs) {
  const std::vector<bool> isWritten = writtenBuffers(program.dag);
  std::set<planner::BufferId> inputs, uploaded;
  for (const ProgramArgument &argument : program.arguments)
    if (argument.role == ArgumentRole::Input && argument.buffer &&
        !argument.shape.empty() && !isWritten[argument.buffer->value])
      inputs.insert(*argument.buffer);
  Uploads uploads;
  std::map<DeviceId, double> us;
  for (size_t n = 0; n < program.dag.nodes.size(); ++n) {
    const planner::DagNode &node = program.dag.nodes[n];
    auto *copy = std::get_if<planner::CopyCall>(&node.work);
    const double times = timesInReplay(program.dag, node.phase);
    if (!copy || times == 0 || !inputs.contains(copy->source))
      continue;
    const planner::Buffer &to = program.dag.buffer(copy->destination);
    if (!isInArena(to))
      continue;
    uploaded.insert(copy->source);
    uploads.bytes += uint64_t(times * double(copy->sourceBox.numElements()) *
                              copy->sourceBox.elementBytes);
    uploads.us = std::max(uploads.us, us[to.device] += times * durationsUs[n]);
  }
  uploads.arguments = uploaded.size();
  return uploads;
}

std::string uploadsText(const LoadedProgram &program,
                        std::span<const double> durationsUs) {
  std::string out;
  if (const MadeResident &made = program.madeResident; made.arguments > 0)
    out = fmt::format(
        "resident   {}, {} bytes, by --role and --resident-except\n",
        counted(made.arguments, "argument"), made.bytes);
  const Uploads uploads = uploadsOf(program, durationsUs);
  if (uploads.arguments > 0)
    out += fmt::format(
        "uploads    {} that nothing writes, {} bytes, {} copied in each "
        "replay: "
        "{:.3f} us; --resident-except NAMES copies all but NAMES once\n",
        counted(uploads.arguments, "argument"), uploads.bytes,
        uploads.arguments == 1 ? "is" : "are", uploads.us);
  return out;
}

} // namespace mgpu::pipeline
