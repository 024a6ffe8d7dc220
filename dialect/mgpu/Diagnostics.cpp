// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/mgpu/Diagnostics.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Location.h"
#include "mlir/IR/Operation.h"

namespace mgpu::ir {

using namespace mlir;

/// Metadata of diagnostics.
static constexpr const char *ofProgram = "of the program",
                            *unsupported = "unsupported", *absent = "absent";

static InFlightDiagnostic emitMarked(Operation *op, const char *mark) {
  InFlightDiagnostic diagnostic = op->emitOpError();
  diagnostic.getUnderlyingDiagnostic()->getMetadata().emplace_back(
      StringRef(mark));
  return diagnostic;
}

static bool isMarked(Diagnostic &diagnostic, StringRef mark) {
  return llvm::any_of(diagnostic.getMetadata(), [&](const auto &argument) {
    return argument.getKind() ==
               DiagnosticArgument::DiagnosticArgumentKind::String &&
           argument.getAsString() == mark;
  });
}

std::string describeLocation(Location location) {
  std::string found;
  location->walk([&](Location inner) {
    auto file = dyn_cast<FileLineColLoc>(inner);
    if (!file)
      return WalkResult::advance();
    found = (file.getFilename().getValue() + ":" + Twine(file.getLine()) + ":" +
             Twine(file.getColumn()))
                .str();
    return WalkResult::interrupt();
  });
  return found;
}

std::string describeLocations(Location location) {
  auto fused = dyn_cast<FusedLoc>(location);
  if (!fused)
    return describeLocation(location);
  std::string all;
  for (Location each : fused.getLocations())
    all += (all.empty() ? "" : " + ") + describeLocation(each);
  return all;
}

std::pair<StringRef, unsigned> fileLine(Location location) {
  if (auto file = dyn_cast<FileLineColRange>(location))
    return {file.getFilename(), file.getStartLine()};
  if (auto name = dyn_cast<NameLoc>(location))
    return fileLine(name.getChildLoc());
  if (auto call = dyn_cast<CallSiteLoc>(location))
    return fileLine(call.getCallee());
  if (auto fused = dyn_cast<FusedLoc>(location))
    for (Location each : fused.getLocations())
      if (auto found = fileLine(each); found.second)
        return found;
  return {};
}

std::string nameOf(Location location, StringRef fallback) {
  if (auto name = dyn_cast<NameLoc>(location))
    return name.getName().str();
  return fallback.str();
}

InFlightDiagnostic emitUnsupported(Operation *op) {
  return emitMarked(op, unsupported);
}

bool isUnsupported(Diagnostic &diagnostic) {
  return isMarked(diagnostic, unsupported);
}

InFlightDiagnostic emitAbsent(Operation *op) { return emitMarked(op, absent); }

bool isAbsent(Diagnostic &diagnostic) { return isMarked(diagnostic, absent); }

InFlightDiagnostic emitProgramError(Operation *op) {
  return emitMarked(op, ofProgram);
}

bool isProgramError(Diagnostic &diagnostic) {
  return isMarked(diagnostic, ofProgram);
}

FirstError::FirstError(MLIRContext *context, Others others)
    : handler(context, [this, others](Diagnostic &diagnostic) {
        if (first.message.empty() &&
            diagnostic.getSeverity() == DiagnosticSeverity::Error) {
          std::string &where = first.location;
          where = describeLocation(diagnostic.getLocation());
          first.message =
              (where.empty() ? "" : where + ": ") + diagnostic.str();
          if (isProgramError(diagnostic))
            first.kind = ErrorKind::Invalid;
        }
        return success(others == Others::Miss);
      }) {}

Error FirstError::error(std::string_view otherwise) const {
  Error error = first;
  if (error.message.empty())
    error.message = otherwise;
  return error;
}

} // namespace mgpu::ir
