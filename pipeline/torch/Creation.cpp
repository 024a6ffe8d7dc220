// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Tensors of nothing but numbers, and changes of type.
#include "pipeline/torch/Pointwise.h"

#include <cmath>

namespace mgpu::pipeline::torch {

namespace {

Results filled(Builder &b, const Call &call, const Scalar &value,
               ElementType element, Sizes sizes) {
  for (int64_t size : sizes)
    if (size < 0)
      call.refuse("its sizes are none", ErrorKind::Invalid);
  return {b.constant(value, element, std::move(sizes))};
}

/// 0 or 1 of the sizes `size`, or as another tensor; `detail` is the number.
/// Elements that are not initialised are 0.
Results ofNumber(Builder &b, const Call &call) {
  const Scalar value = Scalar::of(int64_t(*call.detail - '0'));
  if (!call.has("self"))
    return filled(b, call, value, call.element("dtype", ElementType::F32),
                  call.integers("size"));
  const Tensor like = call.tensor("self");
  return filled(b, call, value, call.element("dtype", like.element),
                call.has("size") ? call.integers("size") : like.sizes);
}

ElementType typeOf(const Scalar &value) {
  return value.isFloat()                    ? ElementType::F32
         : value.kind == Scalar::Kind::Bool ? ElementType::I1
                                            : ElementType::I64;
}

Results full(Builder &b, const Call &call) {
  const Scalar value = call.scalar(call.detail ? call.detail : "fill_value");
  if (call.has("self")) {
    const Tensor like = call.tensor("self");
    return filled(b, call, value,
                  call.has("dtype") ? call.element("dtype", like.element)
                                    : like.element,
                  call.has("size") ? call.integers("size") : like.sizes);
  }
  return filled(b, call, value, call.element("dtype", typeOf(value)),
                call.has("size") ? call.integers("size") : Sizes());
}

Results arange(Builder &b, const Call &call) {
  const Scalar start = call.has("start") ? call.scalar("start")
                                         : Scalar::of(int64_t(0)),
               end = call.scalar("end"),
               step = call.has("step") ? call.scalar("step")
                                       : Scalar::of(int64_t(1));
  const bool isReal = start.isFloat() || end.isFloat() || step.isFloat();
  const ElementType element =
      call.element("dtype", isReal ? ElementType::F32 : ElementType::I64);
  const double count = std::ceil((end.real - start.real) / step.real);
  if (!(count >= 0 && count < double(int64_t(1) << 40)))
    call.refuse("it has no count of elements", ErrorKind::Invalid);
  const ElementType in = isReal ? ElementType::F64 : ElementType::I64;
  const Tensor steps = b.iota(0, in, {int64_t(count)});
  Tensor all =
      b.convert(steps * b.constant(step, in) + b.constant(start, in), element);
  if (!isReal && start.whole == 0)
    all.step = step.whole;
  return {all};
}

/// Equal steps from start to end, from the nearer end, as ATen has them; one
/// step is the start.
Results linspace(Builder &b, const Call &call) {
  const double start = call.real("start"), end = call.real("end");
  const int64_t steps = call.integer("steps");
  if (steps < 0 || steps > mostConstant)
    call.refuse("it has no count of elements");
  const double step = steps > 1 ? (end - start) / double(steps - 1) : 0;
  std::vector<double> all;
  for (int64_t k = 0; k < steps; ++k)
    all.push_back(k < steps / 2 || steps == 1
                      ? start + step * double(k)
                      : end - step * double(steps - k - 1));
  const ElementType element = call.element("dtype", ElementType::F32);
  if (!isFloat(element))
    call.refuse("its numbers are whole");
  return {b.constants(all, element, {steps})};
}

Results eye(Builder &b, const Call &call) {
  const int64_t rows = call.integer("n"),
                columns = call.has("m") ? call.integer("m") : rows;
  if (rows < 0 || columns < 0)
    call.refuse("its sizes are none", ErrorKind::Invalid);
  return {
      b.convert(b.compare("EQ", b.iota(0, ElementType::I64, {rows, columns}),
                          b.iota(1, ElementType::I64, {rows, columns})),
                call.element("dtype", ElementType::F32))};
}

Results converted(Builder &b, const Call &call) {
  const Tensor x = call.tensor("self");
  return {b.convert(x, call.detail ? call.tensor("other").element
                                   : call.element("dtype", x.element))};
}

/// The value of `src` in the shape and type of self.
Results copied(Builder &b, const Call &call) {
  const Tensor x = call.tensor("self");
  return {b.broadcast(b.convert(call.tensor("src"), x.element), x.sizes)};
}
Results filledBy(Builder &b, const Call &call) {
  const Tensor x = call.tensor("self");
  return {
      b.broadcast(asElements(b, operandOf(call, "value"), x.element), x.sizes)};
}
Results zeroed(Builder &b, const Call &call) {
  const Tensor x = call.tensor("self");
  return {b.constant(Scalar::of(int64_t(0)), x.element, x.sizes)};
}

constexpr Operation operations[] = {
    {"zeros(size, dtype=None)", ofNumber, "0"},
    {"ones(size, dtype=None)", ofNumber, "1"},
    {"empty.memory_format(size, dtype=None)", ofNumber, "0"},
    {"zeros_like(self, dtype=None)", ofNumber, "0"},
    {"zero(self)", zeroed},
    {"ones_like(self, dtype=None)", ofNumber, "1"},
    {"empty_like(self, dtype=None)", ofNumber, "0"},
    {"new_zeros(self, size, dtype=None)", ofNumber, "0"},
    {"new_ones(self, size, dtype=None)", ofNumber, "1"},
    {"new_empty(self, size, dtype=None)", ofNumber, "0"},
    {"new_empty_strided(self, size, stride, dtype=None)", ofNumber, "0"},
    {"empty_strided(size, stride, dtype=None)", ofNumber, "0"},
    {"full(size, fill_value, dtype=None)", full},
    {"full_like(self, fill_value, dtype=None)", full},
    {"new_full(self, size, fill_value, dtype=None)", full},
    {"scalar_tensor(s, dtype=None)", full, "s"},
    {"fill.Scalar(self, value)", filledBy},
    {"fill.Tensor(self, value)", filledBy},
    {"arange(end, dtype=None)", arange},
    {"arange.start(start, end, dtype=None)", arange},
    {"arange.start_step(start, end, step=1, dtype=None)", arange},
    {"linspace(start, end, steps, dtype=None)", linspace},
    {"eye(n, dtype=None)", eye},
    {"eye.m(n, m, dtype=None)", eye},
    {"copy(self, src)", copied},
    {"_to_copy(self, dtype=None)", converted},
    {"to.dtype(self, dtype, copy=False)", converted},
    {"to.device(self, dtype, copy=False)", converted},
    {"to.dtype_layout(self, dtype=None, copy=False)", converted},
    {"to.other(self, other, copy=False)", converted, "other"},
    {"type_as(self, other)", converted, "other"},
};

} // namespace

std::span<const Operation> creationOperations() { return operations; }

} // namespace mgpu::pipeline::torch
