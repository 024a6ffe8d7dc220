// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#ifndef MGPU_PLANNER_IMPORT_SCALARARGUMENTS_H
#define MGPU_PLANNER_IMPORT_SCALARARGUMENTS_H

// The values and roles that a user gives arguments.

#include "support/Array.h"
#include "support/Result.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

#include <map>
#include <string>

namespace mgpu::planner {

/// Texts by the name or number of an argument.
using ArgumentTexts = std::map<std::string, std::string>;

/// A user's number as a constant of `type`, read as arrays' numbers are. Usage
/// where the text is not such a number.
Result<mlir::Attribute> parseScalar(mlir::Type type, ElementType element,
                                    const std::string &text);

/// The user's entry for argument `index`, by name or number; null without one.
const std::string *findText(const ArgumentTexts &texts, const std::string &name,
                            unsigned index);

/// `mgpu.name` of an argument, else its SSA name, else its number.
std::string argumentName(mlir::func::FuncOp function, unsigned index);

/// Writes the user's roles over those that `function` gives its arguments. They
/// are not judged here: buildDag() refuses those that are none.
void setRoles(mlir::func::FuncOp function, const ArgumentTexts &roles);

/// Puts the values of integer arguments into the body of `function`, where they
/// decide shapes, loop bounds and conditions. Floats stay arguments, so that a
/// kernel is the same for each value, and so do those whose role is dynamic.
/// Values that are not numbers are left for buildDag() to refuse.
void foldScalars(mlir::func::FuncOp function, const ArgumentTexts &values);

} // namespace mgpu::planner

#endif // MGPU_PLANNER_IMPORT_SCALARARGUMENTS_H
