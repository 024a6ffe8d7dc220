// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/import/BuildDag.h"

#include "dialect/mgpu/Diagnostics.h"
#include "planner/import/Interpreter.h"
#include "planner/import/Phases.h"
#include "support/Array.h"

#include "mlir/IR/Diagnostics.h"

#include <fmt/format.h>

namespace mgpu::planner {

using namespace mlir;

namespace {

std::optional<ArgumentRole> parseRole(llvm::StringRef text) {
  return llvm::StringSwitch<std::optional<ArgumentRole>>(text)
      .Case("input", ArgumentRole::Input)
      .Case("output", ArgumentRole::Output)
      .Case("resident", ArgumentRole::Resident)
      .Case("specialised", ArgumentRole::Specialised)
      .Case("dynamic", ArgumentRole::Dynamic)
      .Default(std::nullopt);
}

/// A user's number as a constant of `type`, read as arrays' numbers are.
Result<Attribute> parseScalar(Type type, ElementType element,
                              const std::string &text) {
  Array value{element, {}, std::vector<std::byte>(sizeBytes(element))};
  if (NumberText outcome = parseNumber(text, element, value.bytes.data());
      outcome != NumberText::Stored)
    return fail(ErrorKind::Usage, whyNotStored(outcome, text, element));
  if (isa<FloatType>(type))
    return FloatAttr::get(type, loadNumber(value, 0)); // exact
  uint64_t bits = 0; // little-endian, as all machines that this runs on
  std::copy(value.bytes.begin(), value.bytes.end(),
            reinterpret_cast<std::byte *>(&bits));
  const unsigned width =
      type.isIndex() ? 64u : cast<IntegerType>(type).getWidth();
  return IntegerAttr::get(type, llvm::APInt(64, bits).trunc(width));
}

/// The user's entry for argument `index`, by name or number.
const std::string *lookUp(const std::map<std::string, std::string> &map,
                          const std::string &name, unsigned index) {
  for (const std::string &key : {name, std::to_string(index)})
    if (auto at = map.find(key); at != map.end())
      return &at->second;
  return nullptr;
}

class Import {
public:
  /// `loop`, if any, is to stay rolled.
  Import(ModuleOp module, const ImportOptions &options, scf::ForOp loop)
      : module(module), options(options),
        interpreter(module, options, program.dag, loop) {}

  Result<ImportedProgram> run();
  bool triedToRoll() const { return interpreter.rolledTrips().has_value(); }

private:
  Result<void> bindArgument(func::FuncOp function, unsigned index,
                            Interpreter::Values &values);
  Result<void> bindResults(func::FuncOp function,
                           const Interpreter::Values &values);
  Result<void> checkNames(func::FuncOp function);
  Result<void> rollLoop();
  Result<void> checkRoles(func::FuncOp function);

  ModuleOp module;
  const ImportOptions &options;
  ImportedProgram program;
  Interpreter interpreter;
  std::vector<bool> roleGiven;
};

Result<void> Import::bindArgument(func::FuncOp function, unsigned index,
                                  Interpreter::Values &values) {
  BlockArgument argument = function.getArgument(index);
  ProgramArgument bound;
  bound.name = nameOf(argument.getLoc(), std::to_string(index));
  if (auto name = function.getArgAttrOfType<StringAttr>(index, "mgpu.name"))
    bound.name = name.str();
  Type type = argument.getType();
  auto shaped = dyn_cast<MemRefType>(type);
  auto elementType = elementTypeOf(shaped ? shaped.getElementType() : type);
  auto refuse = [&](ErrorKind kind, std::string text) {
    emitError(argument.getLoc()) << text;
    return fail(kind, std::move(text));
  };
  if (!elementType)
    return refuse(ErrorKind::Unsupported,
                  fmt::format("argument '{}' of @{} has a type that cannot be "
                              "bound; use memrefs and numbers",
                              bound.name, options.entry));
  bound.elementType = *elementType;

  std::optional<ArgumentRole> role;
  std::string roleText;
  if (auto attribute =
          function.getArgAttrOfType<StringAttr>(index, "mgpu.role"))
    roleText = attribute.str();
  if (const std::string *given = lookUp(options.roles, bound.name, index))
    roleText = *given;
  if (!roleText.empty()) {
    role = parseRole(roleText);
    bool scalarRole =
        role == ArgumentRole::Specialised || role == ArgumentRole::Dynamic;
    if (!role || scalarRole == bool(shaped))
      return refuse(lookUp(options.roles, bound.name, index)
                        ? ErrorKind::Usage
                        : ErrorKind::Invalid,
                    fmt::format("argument '{}' cannot have role '{}'; memrefs "
                                "take input, output or resident, scalars "
                                "specialised or dynamic",
                                bound.name, roleText));
  }
  roleGiven.push_back(role.has_value());

  auto addArgumentBuffer = [&](MemRefType bufferType) {
    bound.buffer = interpreter.addBuffer(bound.name, DeviceId::host(),
                                         BufferRole::Argument, bufferType);
    program.dag.buffers.back().index = index;
  };
  if (role == ArgumentRole::Dynamic) {
    bound.role = *role;
    addArgumentBuffer(MemRefType::get({}, type));
    values.push_back(DynamicValue{*bound.buffer});
  } else if (!shaped) {
    bound.role = ArgumentRole::Specialised;
    const std::string *text = lookUp(options.scalars, bound.name, index);
    if (!text)
      return fail(ErrorKind::Usage,
                  fmt::format("argument '{0}' of @{1} is a scalar without a "
                              "value; give --arg {0}=NUMBER",
                              bound.name, options.entry));
    auto value = parseScalar(type, *elementType, *text);
    if (!value)
      return fail(value.error().kind, fmt::format("--arg {}: {}", bound.name,
                                                  value.error().message));
    bound.value = *text;
    values.push_back(*value);
  } else {
    if (!shaped.hasStaticShape() || !shaped.getLayout().isIdentity())
      return fail(ErrorKind::Unsupported,
                  fmt::format("argument '{}' of @{} must have a static shape "
                              "and the identity layout",
                              bound.name, options.entry));
    bound.role = role.value_or(ArgumentRole::Input);
    bound.shape = shaped.getShape().vec();
    addArgumentBuffer(shaped);
    values.push_back(
        MemRefValue{*bound.buffer,
                    0,
                    {shaped.getShape().begin(), shaped.getShape().end()},
                    rowMajorStrides(shaped.getShape())});
  }
  program.arguments.push_back(std::move(bound));
  return {};
}

Result<void> Import::bindResults(func::FuncOp function,
                                 const Interpreter::Values &values) {
  for (auto [index, value] : llvm::enumerate(values)) {
    auto *view = std::get_if<MemRefValue>(&value);
    ProgramArgument result;
    result.name = fmt::format("r{}", index);
    result.role = ArgumentRole::Output;
    Buffer *buffer = view ? &program.dag.buffers[view->buffer.value] : nullptr;
    bool whole = buffer && buffer->device.isHost() && view->offset == 0 &&
                 std::equal(view->sizes.begin(), view->sizes.end(),
                            buffer->shape.begin(), buffer->shape.end()) &&
                 view->strides == rowMajorStrides(buffer->shape);
    if (!whole)
      return fail(ErrorKind::Unsupported,
                  fmt::format("result {} of @{} is not a whole host buffer; "
                              "copy it into one and return that",
                              index, options.entry));
    if (buffer->role == BufferRole::HostLocal) {
      buffer->role = BufferRole::Result;
      buffer->index = uint32_t(index);
    }
    result.elementType = buffer->elementType;
    result.shape = buffer->shape;
    result.buffer = view->buffer;
    program.results.push_back(std::move(result));
  }
  return {};
}

// An argument is known by its name or its number, a result by its name: what
// two of them answer to would be one of them only.
Result<void> Import::checkNames(func::FuncOp function) {
  auto refuse = [&](size_t index, const std::string &why) {
    std::string text =
        fmt::format("argument {} of @{} is named '{}', {}: give "
                    "it another name (mgpu.name)",
                    index, options.entry, program.arguments[index].name, why);
    emitError(function.getArgument(unsigned(index)).getLoc()) << text;
    return fail(ErrorKind::Invalid, std::move(text));
  };
  std::map<std::string, size_t> taken;
  for (size_t k = 0; k < function.getNumResults(); ++k)
    taken.emplace(fmt::format("r{}", k), function.getNumArguments() + k);
  for (size_t k = 0; k < program.arguments.size(); ++k) {
    const std::string &name = program.arguments[k].name;
    if (name.empty())
      return refuse(k, "which is no name");
    const bool isNumber =
        name.find_first_not_of("0123456789") == std::string::npos;
    if (isNumber && name != std::to_string(k))
      return refuse(k, "which reads as the number of an argument");
    auto [other, isNew] = taken.emplace(name, k);
    if (!isNew)
      return refuse(k, other->second < k
                           ? fmt::format("as argument {} is", other->second)
                           : "as a result is");
  }
  return {};
}

Result<void> Import::checkRoles(func::FuncOp function) {
  std::vector<bool> isWritten(program.dag.buffers.size(), false);
  for (const DagNode &node : program.dag.nodes)
    for (const BufferUse &use : node.uses)
      if (use.writes)
        isWritten[use.buffer.value] = true;
  for (size_t k = 0; k < program.arguments.size(); ++k) {
    const ProgramArgument &argument = program.arguments[k];
    if (!roleGiven[k] || argument.role != ArgumentRole::Input ||
        !argument.buffer || !isWritten[argument.buffer->value])
      continue;
    std::string text =
        fmt::format("argument '{}' of @{} cannot have role 'input', as the "
                    "program writes it: give it role 'output', or none",
                    argument.name, options.entry);
    emitError(function.getArgument(unsigned(k)).getLoc()) << text;
    return fail(lookUp(options.roles, argument.name, unsigned(k))
                    ? ErrorKind::Usage
                    : ErrorKind::Invalid,
                std::move(text));
  }
  return {};
}

Result<void> Import::rollLoop() {
  if (!interpreter.rolledTrips())
    return {};
  MGPU_TRY_ASSIGN(std::vector<BufferId> newIds,
                  dropSecondTrip(program.dag, *interpreter.rolledTrips()));
  for (auto *list : {&program.arguments, &program.results})
    for (ProgramArgument &bound : *list)
      if (bound.buffer)
        bound.buffer = newIds[bound.buffer->value];
  return {};
}

Result<ImportedProgram> Import::run() {
  auto function = module.lookupSymbol<func::FuncOp>(options.entry);
  if (!function || function.isExternal())
    return fail(ErrorKind::Usage,
                fmt::format("no function @{} with a body; name one with "
                            "--entry",
                            options.entry));
  program.dag.name = options.entry;
  ir::FirstError firstError(module.getContext(), ir::FirstError::Others::See);
  Interpreter::Values values;
  for (unsigned k = 0; k < function.getNumArguments(); ++k)
    MGPU_TRY(bindArgument(function, k, values));
  MGPU_TRY(checkNames(function));
  for (const auto *map : {&options.scalars, &options.roles})
    for (const auto &[key, value] : *map) {
      bool known = false;
      for (size_t k = 0; k < program.arguments.size(); ++k)
        known |= key == program.arguments[k].name || key == std::to_string(k);
      if (!known)
        return fail(ErrorKind::Usage, fmt::format("@{} has no argument '{}'",
                                                  options.entry, key));
    }
  auto results = interpreter.runEntry(function, std::move(values));
  if (failed(results))
    return fail(interpreter.isUnsupported() ? ErrorKind::Unsupported
                                            : ErrorKind::Invalid,
                firstError.message);
  MGPU_TRY(bindResults(function, *results));
  MGPU_TRY(rollLoop());
  MGPU_TRY(checkRoles(function));
  inferRoles(program, roleGiven);
  assignPhases(program);
  program.numRaces = interpreter.numRaces();
  if (auto reasons = module->getAttrOfType<ArrayAttr>("mgpu.not_fused"))
    for (auto reason : reasons.getAsRange<StringAttr>())
      program.notFused.push_back(reason.str());
  for (const Buffer &buffer : program.dag.buffers)
    if (buffer.sizeBytes >= uint64_t(1) << 62)
      return fail(ErrorKind::Invalid,
                  fmt::format("buffer '{}' of 2^62 bytes or more cannot be "
                              "addressed; make its shape smaller",
                              buffer.name));
  program.dag.normalize();
  if (auto ok = program.dag.check(); !ok)
    return fail(ErrorKind::Internal,
                "importer made an illegal DAG: " + ok.error().message);
  return std::move(program);
}

/// The program names GPUs by number; which ones it gets is not its choice.
void warnOfDeviceIds(ModuleOp module) {
  for (auto config : module.getOps<ir::DeviceConfigOp>())
    if (config.getConfig().getDeviceIds())
      config.emitWarning("deviceIds is ignored: --target chooses the GPUs");
}

} // namespace

// A loop is first tried rolled. If that fails, or makes the program look worse
// than it is (what a kernel touches is known less exactly), it is unrolled,
// and the user hears of that attempt only.
Result<ImportedProgram> buildDag(ModuleOp module,
                                 const ImportOptions &options) {
  warnOfDeviceIds(module);
  auto function = module.lookupSymbol<func::FuncOp>(options.entry);
  scf::ForOp loop = function ? findLoopToRoll(function) : scf::ForOp();
  std::string whyNot;
  if (loop && options.rollFrom > 0) {
    std::vector<Diagnostic> held;
    Result<ImportedProgram> program = fail(ErrorKind::Internal, "");
    bool triedToRoll;
    {
      ScopedDiagnosticHandler hold(module.getContext(), [&](Diagnostic &found) {
        held.push_back(std::move(found));
      });
      Import import(module, options, loop);
      program = import.run();
      triedToRoll = import.triedToRoll();
    }
    bool isLong = program && program->dag.nodes.size() >
                                 options.nodeLimit / program->dag.loop.trips;
    if (!triedToRoll || (program && (held.empty() || isLong))) {
      for (Diagnostic &diagnostic : held)
        module.getContext()->getDiagEngine().emit(std::move(diagnostic));
      return program;
    }
    whyNot = program ? "what its kernels touch would be known less exactly"
                     : program.error().message;
  }
  auto program = Import(module, options, {}).run();
  if (program || whyNot.empty())
    return program;
  return fail(program.error().kind,
              fmt::format("{} (the loop at {} is unrolled: {})",
                          program.error().message,
                          ir::describeLocation(loop->getLoc()), whyNot));
}

} // namespace mgpu::planner
