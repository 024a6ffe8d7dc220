// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dialect/conversion/sdy/ManualCode.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace mgpu::conversion {

using namespace mlir;

//===----------------------------------------------------------------------===//
// Numbers of the device
//===----------------------------------------------------------------------===//

Value DeviceCode::constant(int64_t value) {
  auto type = RankedTensorType::get({}, b.getI64Type());
  return stablehlo::ConstantOp::create(b, DenseElementsAttr::get(type, value));
}

Value DeviceCode::deviceNumber() {
  if (number)
    return number;
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(&function.front());
  Value index = spmd::DeviceIndexOp::create(b, b.getIndexType());
  Value integer = arith::IndexCastOp::create(b, b.getI64Type(), index);
  return number = tensor::FromElementsOp::create(
             b, RankedTensorType::get({}, b.getI64Type()), integer);
}

Value DeviceCode::chosen(ArrayRef<int64_t> values) {
  if (llvm::all_equal(values))
    return constant(values[0]);
  Value device = deviceNumber();
  // Most often (device / a) % b * c, which is folded for each device.
  int64_t n = values.size();
  for (int64_t inner = 1; inner < n; ++inner)
    for (int64_t count = 2; n % inner == 0 && count <= n / inner; ++count) {
      int64_t step = values[inner];
      if (!llvm::all_of(llvm::enumerate(values), [&](auto each) {
            return each.value() == int64_t(each.index()) / inner % count * step;
          }))
        continue;
      Value at = device;
      if (inner > 1)
        at = stablehlo::DivOp::create(b, at.getType(), at, constant(inner));
      if (inner * count < n)
        at = stablehlo::RemOp::create(b, at.getType(), at, constant(count));
      return step == 1
                 ? at
                 : stablehlo::MulOp::create(b, at.getType(), at, constant(step))
                       .getResult();
    }
  auto type = RankedTensorType::get({n}, b.getI64Type());
  Value table =
      stablehlo::ConstantOp::create(b, DenseElementsAttr::get(type, values));
  return entryAt(table, device);
}

//===----------------------------------------------------------------------===//
// Parts of tensors
//===----------------------------------------------------------------------===//

Value DeviceCode::reshape(Value input, ArrayRef<int64_t> shape) {
  if (tensorOf(input).getShape() == shape)
    return input;
  return stablehlo::ReshapeOp::create(b, tensorOf(input).clone(shape), input);
}

Value DeviceCode::part(Value whole, ValueRange starts,
                       ArrayRef<int64_t> sizes) {
  return stablehlo::DynamicSliceOp::create(b, tensorOf(whole).clone(sizes),
                                           whole, starts, sizes);
}

Value DeviceCode::entryAt(Value stacked, Value index) {
  SmallVector<int64_t> sizes(tensorOf(stacked).getShape());
  SmallVector<Value> starts(sizes.size());
  starts[0] = index;
  for (Value &start : MutableArrayRef(starts).drop_front())
    start = constant(0);
  sizes[0] = 1;
  return reshape(part(stacked, starts, sizes), ArrayRef(sizes).drop_front());
}

Value DeviceCode::entry(Value stacked, int64_t index) {
  auto type = tensorOf(stacked);
  SmallVector<int64_t> starts(type.getRank(), 0), strides(type.getRank(), 1);
  SmallVector<int64_t> limits(type.getShape());
  starts[0] = index;
  limits[0] = index + 1;
  SmallVector<int64_t> sizes(type.getShape());
  sizes[0] = 1;
  Value one = stablehlo::SliceOp::create(b, type.clone(sizes), stacked, starts,
                                         limits, strides);
  return reshape(one, ArrayRef(sizes).drop_front());
}

Value DeviceCode::zeros(RankedTensorType type) {
  return stablehlo::ConstantOp::create(
      b, DenseElementsAttr::get(
             type, isa<FloatType>(type.getElementType())
                       ? Attribute(b.getFloatAttr(type.getElementType(), 0))
                       : Attribute(IntegerAttr::get(
                             type.getElementType(),
                             APInt(type.getElementTypeBitWidth(), 0)))));
}

Value DeviceCode::cut(Value whole, const Parts &parts) {
  if (parts.isWhole())
    return whole;
  SmallVector<int64_t> sizes = *parts.shapeOf(tensorOf(whole).getShape());
  SmallVector<Value> starts;
  for (unsigned dim = 0; dim < sizes.size(); ++dim)
    starts.push_back(chosen(llvm::map_to_vector(
        parts.of, [&](const auto &of) { return of[dim] * sizes[dim]; })));
  return part(whole, starts, sizes);
}

Value DeviceCode::join(Value part, const Parts &parts) {
  for (unsigned dim = 0; dim < parts.counts.size(); ++dim) {
    if (parts.counts[dim] == 1)
      continue;
    std::optional<spmd::DeviceGroups> groups = parts.groupsAlong(dim);
    if (!groups)
      return {};
    part = allGather(part, dim, *groups);
  }
  return part;
}

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

ArrayAttr DeviceCode::listOf(const spmd::DeviceGroups &groups) {
  return b.getArrayAttr(
      llvm::map_to_vector(groups, [&](const auto &group) -> Attribute {
        return b.getDenseI64ArrayAttr(group);
      }));
}

ArrayAttr DeviceCode::attributeOf(const spmd::DeviceGroups &groups) {
  if (groups.size() == 1 && int64_t(groups[0].size()) == devices &&
      llvm::is_sorted(groups[0]))
    return {};
  return listOf(groups);
}

Collectives DeviceCode::among(const spmd::DeviceGroups &groups) {
  return Collectives(b, b.getLoc(), attributeOf(groups), groups[0].size());
}

Value DeviceCode::allGather(Value input, int64_t axis,
                            const spmd::DeviceGroups &groups) {
  return among(groups).allGather(input, axis);
}

Value DeviceCode::allReduce(Value input, ir::ReductionKind kind,
                            const spmd::DeviceGroups &groups) {
  Value init = tensor::EmptyOp::create(b, tensorOf(input).getShape(),
                                       tensorOf(input).getElementType());
  return spmd::AllReduceOp::create(b, TypeRange(init.getType()), kind, input,
                                   init, attributeOf(groups))
      ->getResult(0);
}

Value DeviceCode::reduceScatter(Value input, ir::ReductionKind kind,
                                int64_t axis,
                                const spmd::DeviceGroups &groups) {
  return among(groups).reduceScatter(input, kind, axis);
}

Value DeviceCode::allToAll(Value input, int64_t split, int64_t concat,
                           const spmd::DeviceGroups &groups) {
  return among(groups).allToAll(input, split, concat);
}

Value DeviceCode::broadcast(Value input, const spmd::DeviceGroups &groups) {
  return among(groups).broadcast(input, 0);
}

Value DeviceCode::permute(Value input, const spmd::DeviceGroups &pairs) {
  return conversion::permute(b, b.getLoc(), input, listOf(pairs));
}

Value DeviceCode::stack(Value input, const spmd::DeviceGroups &groups) {
  SmallVector<int64_t> shape(tensorOf(input).getShape());
  shape.insert(shape.begin(), 1);
  return allGather(reshape(input, shape), 0, groups);
}

} // namespace mgpu::conversion
