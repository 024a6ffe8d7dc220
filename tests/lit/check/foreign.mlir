// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// An operation or a type of a dialect that is not read is exit 5 and named; what
// only annotates is left out. A misspelt operation, or a file that is no MLIR,
// is exit 1 and says what was meant.
// RUN: split-file %s %t
// RUN: sh %S/Inputs/check.sh mgpu-tune /dev/null %t/custom | FileCheck %s --check-prefix=CUSTOM
// RUN: sh %S/Inputs/check.sh mgpu-tune /dev/null %t/generic | FileCheck %s --check-prefix=GENERIC
// RUN: sh %S/Inputs/check.sh mgpu-tune /dev/null %t/type | FileCheck %s --check-prefix=TYPE
// RUN: sh %S/Inputs/check.sh mgpu-tune /dev/null %t/encoding | FileCheck %s --check-prefix=ATTRIBUTE
// RUN: sh %S/Inputs/check.sh mgpu-tune /dev/null %t/global | FileCheck %s --check-prefix=GLOBAL
// RUN: sh %S/Inputs/check.sh mgpu-tune /dev/null %t/quantised | FileCheck %s --check-prefix=QUANTISED
// RUN: mgpu-tune check %t/annotated
// RUN: sh %S/Inputs/check.sh mgpu-tune /dev/null %t/misspelt | FileCheck %s --check-prefix=MISSPELT
// RUN: sh %S/Inputs/check.sh mgpu-tune /dev/null %t/cuda | FileCheck %s --check-prefix=CUDA

// CUSTOM: <stdin>:2:3: error: operation 'tt.return' is of the dialect 'tt', which this version does not read; lower it to
// CUSTOM: exit=5
// GENERIC: <stdin>:2:{{[0-9]+}}: error: operation 'foo.bar' is of the dialect 'foo', which this version does not read
// GENERIC: exit=5
// TYPE: error: type is of the dialect 'tt', which this version does not read
// TYPE: exit=5
// ATTRIBUTE: error: attribute is of the dialect 'foo', which this version does not read
// ATTRIBUTE: exit=5
// GLOBAL: error: operation 'ml_program.global' is of the dialect 'ml_program', which this version does not read
// GLOBAL: exit=5
// QUANTISED: error: argument 'x' of @main has elements of type !quant.uniform<i8:f32, 1.000000e+00>, which is not read
// QUANTISED: exit=5
// MISSPELT: error: there is no operation 'mgpu.allreduce'; did you mean 'all_reduce'?
// MISSPELT: exit=1
// CUDA: error: this is CUDA C++, not MLIR: give it as the `source` of a launch (docs/semantics.md), or call it from a graph built by calls (docs/builder.md)
// CUDA: exit=1

//--- custom
func.func @main() {
  tt.return
}
//--- generic
func.func @main(%x: f32) {
  %0 = "foo.bar"(%x) : (f32) -> f32
  return
}
//--- type
func.func @main(%x: !tt.ptr<f32>) {
  return
}
//--- encoding
func.func @main(%x: tensor<4xf32, #foo.bar<3>>) {
  return
}
//--- global
ml_program.global private mutable @seed(dense<0> : tensor<i64>) : tensor<i64>
func.func @main() attributes {reads = @seed} {
  return
}
//--- annotated
#system = #ttcore.system_desc<[{role = host}], [0, 1]>
module attributes {ttcore.system_desc = #system} {
  ml_program.global private mutable @seed(dense<0> : tensor<i64>) : tensor<i64>
  func.func @forward(
      %x: tensor<4xf32> {ttcore.argument_type = #ttcore.argument_type<input>, ttcore.shard = #ttcore<local_shape local_shape = tensor<4xf32>>},
      %y: tensor<4xf32> {ttcore.kind = "parameter"}) -> (tensor<4xf32> {ttcore.layout = #ttnn.layout<(d0) -> (d0), <1x1>>}) {
    %0 = stablehlo.add %x, %y {ttir.hint = #ttir<hint fast>} : tensor<4xf32>
    %1 = linalg.exp {other.hint = #other.hint<1>} ins(%0 : tensor<4xf32>) outs(%x : tensor<4xf32>) -> tensor<4xf32>
    return %1 : tensor<4xf32>
  }
}
//--- quantised
func.func @main(%x: tensor<2x!quant.uniform<i8:f32, 1.0:0>>, %y: tensor<2xf32>) -> tensor<2xf32> {
  %0 = stablehlo.add %y, %y : tensor<2xf32>
  return %0 : tensor<2xf32>
}
//--- misspelt
func.func @main(%x: memref<4xf32>) {
  mgpu.allreduce %x
  return
}
//--- cuda
__global__ void k(float *x) { x[0] = 1; }
