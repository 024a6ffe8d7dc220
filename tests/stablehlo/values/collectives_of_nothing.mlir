// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A collective of no elements, of devices' parts of none.
// argument a: 2x3x0xi32 =
// argument b: 2x0x2xf32 =
// expected r0: 2x6x0xi32 =
// expected r1: 2x0x2xf32 =
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<2x3x0xi32>, %b: tensor<2x0x2xf32>) -> (tensor<2x6x0xi32>, tensor<2x0x2xf32>) {
  %v = sdy.manual_computation(%a) in_shardings=[<@mesh, [{"x"}, {}, {}]>] out_shardings=[<@mesh, [{"x"}, {}, {}]>] manual_axes={"x"} (%c0: tensor<1x3x0xi32>) {
    %c1 = "stablehlo.reshape"(%c0) : (tensor<1x3x0xi32>) -> tensor<3x0xi32>
    %c2 = "stablehlo.all_gather"(%c1) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids}> : (tensor<3x0xi32>) -> tensor<6x0xi32>
    %c3 = "stablehlo.reshape"(%c2) : (tensor<6x0xi32>) -> tensor<1x6x0xi32>
    sdy.return %c3 : tensor<1x6x0xi32>
  } : (tensor<2x3x0xi32>) -> tensor<2x6x0xi32>
  %w = sdy.manual_computation(%b) in_shardings=[<@mesh, [{"x"}, {}, {}]>] out_shardings=[<@mesh, [{"x"}, {}, {}]>] manual_axes={"x"} (%d0: tensor<1x0x2xf32>) {
    %d1 = "stablehlo.reshape"(%d0) : (tensor<1x0x2xf32>) -> tensor<0x2xf32>
    %d2 = "stablehlo.reduce_scatter"(%d1) <{scatter_dimension = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 2, type = 1>, use_global_device_ids}> ({
    ^bb0(%x: tensor<f32>, %y: tensor<f32>):
      %s = stablehlo.add %x, %y : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) : (tensor<0x2xf32>) -> tensor<0x2xf32>
    %d3 = "stablehlo.reshape"(%d2) : (tensor<0x2xf32>) -> tensor<1x0x2xf32>
    sdy.return %d3 : tensor<1x0x2xf32>
  } : (tensor<2x0x2xf32>) -> tensor<2x0x2xf32>
  return %v, %w : tensor<2x6x0xi32>, tensor<2x0x2xf32>
}
