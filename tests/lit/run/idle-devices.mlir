// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One device's program says what stays idle on a machine of several.
// RUN: mgpu-tune plan %s --target sim:dgx-h200 | FileCheck %s
// RUN: mgpu-tune plan %s --target sim:dgx-h200 --devices 8 | FileCheck %s --check-prefix=ALL
// RUN: mgpu-tune run %s --target host:3 | FileCheck %s --check-prefix=HOST
// RUN: mgpu-tune run %s | FileCheck %s --check-prefix=ALL
// CHECK: idle       7 of 8 devices: the program is for 1; give its arguments shardings (sdy, spmd.layout), or --devices 8 where it has some (docs/tensor-programs.md)
// HOST: idle       2 of 3 devices
// ALL-NOT: idle
func.func @main() -> tensor<8xf32> {
  %x = stablehlo.iota dim = 0 : tensor<8xf32>
  %y = stablehlo.add %x, %x : tensor<8xf32>
  return %y : tensor<8xf32>
}
