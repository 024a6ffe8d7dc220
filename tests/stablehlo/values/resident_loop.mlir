// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A loop carries an argument that stays on the devices, and updates it by slices; the one beside it has a next state.
// options: --role x=resident --repeat 2
// doubles
// argument x: 4xi32 = 1 2 3 4
// argument y: 4xi32 = 1 2 3 4
// expected r0: 4xi32 = 101 102 103 4
// expected y: 4xi32 = 4 8 12 16
func.func @main(%x: tensor<4xi32>, %y: tensor<4xi32> {tf.aliasing_output = 1 : i32}) -> (tensor<4xi32>, tensor<4xi32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %three = stablehlo.constant dense<3> : tensor<i32>
  %hundred = stablehlo.constant dense<100> : tensor<1xi32>
  %l:2 = stablehlo.while(%i = %zero, %a = %x) : tensor<i32>, tensor<4xi32>
  cond {
    %t = stablehlo.compare LT, %i, %three, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %t : tensor<i1>
  } do {
    %c = stablehlo.dynamic_slice %a, %i, sizes = [1] : (tensor<4xi32>, tensor<i32>) -> tensor<1xi32>
    %d = stablehlo.add %c, %hundred : tensor<1xi32>
    %b = stablehlo.dynamic_update_slice %a, %d, %i : (tensor<4xi32>, tensor<1xi32>, tensor<i32>) -> tensor<4xi32>
    %j = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %j, %b : tensor<i32>, tensor<4xi32>
  }
  %s = stablehlo.add %y, %y : tensor<4xi32>
  return %l#1, %s : tensor<4xi32>, tensor<4xi32>
}
