// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The names of mgpu's attributes on operations, arguments and results: MLIR
// keeps a word that nobody reads, and nothing would ever say so.
#include "dialect/mgpu/MgpuDialect.h"
#include "support/Spelling.h"

#include "mlir/Interfaces/FunctionInterfaces.h"

#include <vector>

using namespace mlir;
using namespace mgpu::ir;

bool mgpu::ir::isFactOfPasses(StringRef name) {
  static constexpr StringLiteral facts[] = {
      productName, sparseName, clusterName, markName,
      "mgpu.dynamic_shared_bytes", "mgpu.fragment", "mgpu.launch_group",
      "mgpu.subgroup",
      // Facts of earlier versions, which say nothing any more.
      "mgpu.b_turned", "mgpu.matmul"};
  return llvm::is_contained(facts, name);
}

/// An error where none of `known` is the name; `of` is what has it.
static LogicalResult checkName(StringRef name, const std::string &of,
                               const std::vector<std::string> &known,
                               Location location) {
  if (llvm::is_contained(known, name))
    return success();
  return emitError(location) << of << " has no attribute '" << name << "'"
                             << mgpu::didYouMean(name.str(), known);
}

LogicalResult MgpuDialect::verifyOperationAttribute(Operation *op,
                                                    NamedAttribute attribute) {
  static const std::vector<std::string> ofUsers = {"mgpu.name"};
  const StringRef name = attribute.getName();
  if (isa<ModuleOp>(op) && name == "mgpu.device_config")
    return emitError(op->getLoc())
           << "the devices are not an attribute of the module: write the "
              "operation `mgpu.device_config @config "
              "#mgpu.device_config<numDevices = N>` in it";
  if (name == productName)
    return verifyProduct(op, attribute.getValue());
  if (isFactOfPasses(name))
    return success();
  return checkName(name, "'" + op->getName().getStringRef().str() + "' op",
                   ofUsers, op->getLoc());
}

LogicalResult MgpuDialect::verifyRegionArgAttribute(Operation *op,
                                                    unsigned region,
                                                    unsigned argument,
                                                    NamedAttribute attribute) {
  static const std::vector<std::string> known = {"mgpu.name", "mgpu.role"};
  Region &body = op->getRegion(region);
  return checkName(attribute.getName(), "an argument", known,
                   body.empty() ? op->getLoc()
                                : body.getArgument(argument).getLoc());
}

LogicalResult
MgpuDialect::verifyRegionResultAttribute(Operation *op, unsigned, unsigned,
                                         NamedAttribute attribute) {
  static const std::vector<std::string> known = {"mgpu.name", "mgpu.expect",
                                                 "mgpu.expected"};
  return checkName(attribute.getName(), "a result", known, op->getLoc());
}
