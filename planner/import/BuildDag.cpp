// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "planner/import/BuildDag.h"

#include "dialect/mgpu/Diagnostics.h"
#include "planner/import/AccessSet.h"
#include "planner/import/Interpreter.h"
#include "planner/import/ScalarArguments.h"
#include "support/Spelling.h"

#include "mlir/IR/Diagnostics.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

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

uint32_t configuredDevices(ModuleOp module) {
  for (auto config : module.getOps<ir::DeviceConfigOp>())
    return config.getConfig().getNumDevices();
  return 0;
}

class Import {
public:
  /// `loop`, if any, is to stay rolled.
  Import(ModuleOp module, const ImportOptions &options, scf::ForOp loop)
      : module(module), options(options),
        host({.name = options.entry,
              .numDevices = configuredDevices(module),
              .racesAreErrors = options.racesAreErrors,
              .meetSets = meetSets}),
        recorder(host.recorder), interpreter(module, options, host, loop) {}

  Result<ImportedProgram> run();
  bool triedToRoll() const { return recorder.rolledTrips().has_value(); }

private:
  Result<void> bindArgument(func::FuncOp function, unsigned index,
                            Interpreter::Values &values);
  Result<std::optional<ArgumentRole>>
  roleOf(func::FuncOp function, unsigned index, const std::string &name);
  Result<HostValue> bindScalar(Type type, const ArgumentSpec &argument,
                               unsigned index);
  Result<void> checkOptions() const;
  tl::unexpected<Error> noEntry();
  Result<void> bindResults(func::FuncOp function,
                           const Interpreter::Values &values);

  ModuleOp module;
  const ImportOptions &options;
  HostScope host;
  Recorder &recorder;
  Interpreter interpreter;
};

/// An error at an argument of the entry function.
tl::unexpected<Error> refuse(BlockArgument argument, ErrorKind kind,
                             std::string text) {
  emitError(argument.getLoc()) << text;
  return fail(kind, std::move(text));
}

/// The role that the user or the program gives, if one does.
Result<std::optional<ArgumentRole>>
Import::roleOf(func::FuncOp function, unsigned index, const std::string &name) {
  const std::string *ofUser = findText(options.roles, name, index);
  std::string text;
  if (auto attribute =
          function.getArgAttrOfType<StringAttr>(index, "mgpu.role"))
    text = attribute.str();
  if (ofUser)
    text = *ofUser;
  if (text.empty())
    return std::nullopt;
  std::optional<ArgumentRole> role = parseRole(text);
  BlockArgument argument = function.getArgument(index);
  bool isScalar =
      role == ArgumentRole::Specialised || role == ArgumentRole::Dynamic;
  if (!role || isScalar == isa<MemRefType>(argument.getType()))
    return refuse(argument, ofUser ? ErrorKind::Usage : ErrorKind::Invalid,
                  fmt::format("argument '{}' cannot have role '{}'; memrefs "
                              "take input, output or resident, scalars "
                              "specialised or dynamic",
                              name, text));
  return role;
}

/// A scalar whose value is compiled in.
Result<HostValue> Import::bindScalar(Type type, const ArgumentSpec &argument,
                                     unsigned index) {
  const std::string *text = findText(options.scalars, argument.name, index);
  if (!text)
    return fail(ErrorKind::Usage,
                fmt::format("argument '{0}' of @{1} is a scalar without a "
                            "value; give --arg {0}=NUMBER",
                            argument.name, options.entry));
  auto value = parseScalar(type, argument.elementType, *text);
  if (!value)
    return failIn(fmt::format("--arg {}: ", argument.name), value.error());
  recorder.addSpecialised(argument.name, argument.elementType, *text,
                          argument.place);
  return HostValue(*value);
}

Result<void> Import::bindArgument(func::FuncOp function, unsigned index,
                                  Interpreter::Values &values) {
  BlockArgument argument = function.getArgument(index);
  ArgumentSpec bound;
  bound.name = argumentName(function, index);
  bound.place = host.placeOf(argument.getLoc());
  Type type = argument.getType();
  auto shaped = dyn_cast<MemRefType>(type);
  auto elementType = elementTypeOf(shaped ? shaped.getElementType() : type);
  if (!elementType)
    return refuse(argument, ErrorKind::Unsupported,
                  fmt::format("argument '{}' of @{} has {} {}, which is not "
                              "read: give it numbers (docs/limits.md)",
                              bound.name, options.entry,
                              shaped ? "elements of type" : "type",
                              textOf(shaped ? shaped.getElementType() : type)));
  bound.elementType = *elementType;
  MGPU_TRY_ASSIGN(bound.role, roleOf(function, index, bound.name));
  bound.isRoleOfUser = findText(options.roles, bound.name, index);
  if (!shaped && bound.role != ArgumentRole::Dynamic) {
    MGPU_TRY_ASSIGN(HostValue value, bindScalar(type, bound, index));
    values.push_back(std::move(value));
    return {};
  }
  if (shaped) {
    if (!shaped.hasStaticShape() || !shaped.getLayout().isIdentity())
      return refuse(argument, ErrorKind::Unsupported,
                    fmt::format("argument '{}' of @{} must have a static shape "
                                "and the identity layout",
                                bound.name, options.entry));
    bound.shape = shaped.getShape().vec();
  }
  BufferId buffer = recorder.addArgument(std::move(bound));
  values.push_back(shaped ? HostValue(recorder.whole(buffer))
                          : HostValue(DynamicValue{buffer}));
  return {};
}

/// Reads a result attribute `mgpu.expect`.
Expectation expectationOf(DictionaryAttr attributes) {
  Expectation expectation;
  if (auto at = attributes.getAs<StringAttr>("at"))
    expectation.place = at.str();
  if (auto ulps = attributes.getAs<IntegerAttr>("ulps")) {
    expectation.how = Expectation::How::Close;
    expectation.ulps = ulps.getInt();
  }
  if (auto tolerance = attributes.getAs<FloatAttr>("tolerance")) {
    expectation.how = Expectation::How::AlmostEqual;
    expectation.tolerance = tolerance.getValueAsDouble();
  }
  return expectation;
}

/// Behind the results there are pairs of values that must be alike.
Result<void> Import::bindResults(func::FuncOp function,
                                 const Interpreter::Values &values) {
  for (size_t k = 0; k < values.size(); ++k) {
    auto *view = std::get_if<View>(&values[k]);
    auto expected =
        function.getResultAttrOfType<DictionaryAttr>(k, "mgpu.expect");
    auto *other =
        k + 1 < values.size() ? std::get_if<View>(&values[k + 1]) : nullptr;
    if (!expected || !view || !other) {
      MGPU_TRY(recorder.addResult(view ? std::optional(*view) : std::nullopt));
      continue;
    }
    MGPU_TRY(recorder.addExpectation(expectationOf(expected), *view, *other));
    ++k;
  }
  return {};
}

/// Names what there is, for who asked for something else.
static std::string listOf(const std::vector<std::string> &names) {
  return names.empty() ? "none" : fmt::to_string(fmt::join(names, ", "));
}

/// Whether the user's options name arguments that there are.
Result<void> Import::checkOptions() const {
  for (const auto *map : {&options.scalars, &options.roles})
    for (const auto &[key, value] : *map) {
      bool known = false;
      std::vector<std::string> names;
      for (const auto &argument : recorder.soFar().arguments) {
        known |= key == argument.name || key == std::to_string(names.size());
        names.push_back(argument.name);
      }
      if (!known)
        return fail(ErrorKind::Usage,
                    fmt::format("@{} has no argument '{}'; there are: {}{}",
                                options.entry, key, listOf(names),
                                didYouMean(key, names)));
    }
  return {};
}

/// Usage where a time is given for what is no call of unknown meaning.
static Result<void> checkCosts(ModuleOp module, const ImportOptions &options) {
  if (options.costs.empty())
    return {};
  std::vector<std::string> called;
  module.walk([&](ir::LaunchOp launch) {
    if (!launch.isOpaque())
      return;
    auto name = cast<StringAttr>(launch->getAttr("source"));
    if (!llvm::is_contained(called, name.getValue()))
      called.push_back(name.str());
  });
  for (const auto &[name, us] : options.costs)
    if (!llvm::is_contained(called, name))
      return fail(
          ErrorKind::Usage,
          fmt::format("--cost {}: no call of that name is of unknown meaning; "
                      "there are: {}{}",
                      name, listOf(called), didYouMean(name, called)));
  return {};
}

/// Names the functions that there are.
tl::unexpected<Error> Import::noEntry() {
  std::vector<std::string> names;
  for (auto function : module.getOps<func::FuncOp>())
    if (!function.isExternal())
      names.push_back(function.getSymName().str());
  const std::string what =
      fmt::format("no function @{} with a body", options.entry);
  return fail(ErrorKind::Usage,
              names.empty()
                  ? what + "; the program has none: write one, as func.func @" +
                        options.entry
                  : fmt::format("{}; name one with --entry; there are: {}{}",
                                what, fmt::join(names, ", "),
                                didYouMean(options.entry, names)));
}

Result<ImportedProgram> Import::run() {
  auto function = module.lookupSymbol<func::FuncOp>(options.entry);
  if (!function || function.isExternal())
    return noEntry();
  ir::FirstError firstError(module.getContext(), ir::FirstError::Others::See);
  Interpreter::Values values;
  for (unsigned k = 0; k < function.getNumArguments(); ++k)
    MGPU_TRY(bindArgument(function, k, values));
  if (auto ok = recorder.checkNames(function.getNumResults()); !ok)
    return fail(ok.error().kind, host.lastError());
  MGPU_TRY(checkOptions());
  auto results = interpreter.runEntry(function, std::move(values));
  auto located = [&](const Error &error) {
    Error found = firstError.error(error.message);
    found.kind = error.kind;
    return fail(std::move(found));
  };
  if (!results)
    return located(results.error());
  MGPU_TRY(bindResults(function, *results));
  ImportedProgram imported;
  imported.numRaces = recorder.numRaces();
  auto program = recorder.finish();
  if (!program)
    return located(program.error());
  static_cast<Program &>(imported) = std::move(*program);
  return imported;
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
  MGPU_TRY(checkCosts(module, options));
  auto function = module.lookupSymbol<func::FuncOp>(options.entry);
  const bool mayRoll = function && options.rollFrom > 0;
  scf::ForOp loop = mayRoll ? findLoopToRoll(function) : scf::ForOp();
  std::string whyNot;
  if (Operation *op = loop ? findNoInduction(loop) : nullptr)
    whyNot = fmt::format("{}: '{}' op {}", ir::describeLocation(op->getLoc()),
                         op->getName().getStringRef().str(), onlyKernelsCan);
  else if (loop) {
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
