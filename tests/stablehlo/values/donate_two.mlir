// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A result takes the place of one argument.
// exit 1: arguments 0 and 1 are both donated to result 0
func.func @main(%x: tensor<3xf32> {tf.aliasing_output = 0 : i32}, %y: tensor<3xf32> {tf.aliasing_output = 0 : i32}) -> (tensor<3xf32>) {
  %s = stablehlo.add %x, %y : tensor<3xf32>
  return %s : tensor<3xf32>
}
