// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The number of a device that none can have.
// exit 1: must have each of the devices 0 to 9223372036854775807 in a group
module attributes {mhlo.num_replicas = 2 : i32} {
  func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
    %0 = "stablehlo.all_reduce"(%a) <{replica_groups = dense<[[9223372036854775807, 0]]> : tensor<1x2xi64>}> ({
    ^bb0(%x: tensor<f32>, %y: tensor<f32>):
      %z = stablehlo.add %x, %y : tensor<f32>
      stablehlo.return %z : tensor<f32>
    }) : (tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
