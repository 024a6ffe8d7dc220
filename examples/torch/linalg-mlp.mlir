#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0, d1) -> (d1, d0)>
#map2 = affine_map<(d0, d1) -> (d1)>
module attributes {torch.debug_module_name = "Mlp"} {
  ml_program.global private mutable @global_seed(dense<0> : tensor<i64>) : tensor<i64>
  func.func @forward(%arg0: tensor<5x4xf32>) -> tensor<5x3xf32> {
    %cst = arith.constant dense_resource<torch_tensor_6_4_torch.float32> : tensor<6x4xf32>
    %cst_0 = arith.constant dense_resource<torch_tensor_6_torch.float32> : tensor<6xf32>
    %cst_1 = arith.constant dense_resource<torch_tensor_3_6_torch.float32> : tensor<3x6xf32>
    %cst_2 = arith.constant dense_resource<torch_tensor_3_torch.float32> : tensor<3xf32>
    %cst_3 = arith.constant 0.000000e+00 : f32
    %cst_4 = arith.constant 1.000000e+00 : f32
    %cst_5 = arith.constant 2.000000e+00 : f32
    %cst_6 = arith.constant 5.000000e-01 : f32
    %0 = tensor.empty() : tensor<4x6xf32>
    %1 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel"]} ins(%cst : tensor<6x4xf32>) outs(%0 : tensor<4x6xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<4x6xf32>
    %2 = tensor.empty() : tensor<5x6xf32>
    %3 = linalg.fill ins(%cst_3 : f32) outs(%2 : tensor<5x6xf32>) -> tensor<5x6xf32>
    %4 = linalg.matmul ins(%arg0, %1 : tensor<5x4xf32>, tensor<4x6xf32>) outs(%3 : tensor<5x6xf32>) -> tensor<5x6xf32>
    %5 = linalg.generic {indexing_maps = [#map, #map2, #map], iterator_types = ["parallel", "parallel"]} ins(%4, %cst_0 : tensor<5x6xf32>, tensor<6xf32>) outs(%2 : tensor<5x6xf32>) {
    ^bb0(%in: f32, %in_7: f32, %out: f32):
      %13 = arith.addf %in, %in_7 : f32
      linalg.yield %13 : f32
    } -> tensor<5x6xf32>
    %6 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%5 : tensor<5x6xf32>) outs(%2 : tensor<5x6xf32>) {
    ^bb0(%in: f32, %out: f32):
      %13 = math.sqrt %cst_5 : f32
      %14 = arith.divf %in, %13 : f32
      %15 = math.erf %14 : f32
      %16 = arith.addf %15, %cst_4 : f32
      %17 = arith.mulf %16, %cst_6 : f32
      %18 = arith.mulf %in, %17 : f32
      linalg.yield %18 : f32
    } -> tensor<5x6xf32>
    %7 = tensor.empty() : tensor<6x3xf32>
    %8 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel"]} ins(%cst_1 : tensor<3x6xf32>) outs(%7 : tensor<6x3xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<6x3xf32>
    %9 = tensor.empty() : tensor<5x3xf32>
    %10 = linalg.fill ins(%cst_3 : f32) outs(%9 : tensor<5x3xf32>) -> tensor<5x3xf32>
    %11 = linalg.matmul ins(%6, %8 : tensor<5x6xf32>, tensor<6x3xf32>) outs(%10 : tensor<5x3xf32>) -> tensor<5x3xf32>
    %12 = linalg.generic {indexing_maps = [#map, #map2, #map], iterator_types = ["parallel", "parallel"]} ins(%11, %cst_2 : tensor<5x3xf32>, tensor<3xf32>) outs(%9 : tensor<5x3xf32>) {
    ^bb0(%in: f32, %in_7: f32, %out: f32):
      %13 = arith.addf %in, %in_7 : f32
      linalg.yield %13 : f32
    } -> tensor<5x3xf32>
    return %12 : tensor<5x3xf32>
  }
}

{-#
  dialect_resources: {
    builtin: {
      torch_tensor_6_4_torch.float32: "0x04000000000040BF0000003E000020BF0000803E000000BF0000C03E0000C0BE0000003F000080BE0000203F000000BE0000403F00000000000040BF0000003E000020BF0000803E000000BF0000C03E0000C0BE0000003F000080BE0000203F000000BE",
      torch_tensor_6_torch.float32: "0x04000000000000BF000080BE000000000000803E0000003F0000403F",
      torch_tensor_3_6_torch.float32: "0x04000000000020BF000000000000203F000000BE0000003F000080BE0000C03E0000C0BE0000803E000000BF0000003E000020BF000000000000203F000000BE0000003F000080BE0000C03E",
      torch_tensor_3_torch.float32: "0x040000000000003F000080BE0000803F"
    }
  }
#-}
