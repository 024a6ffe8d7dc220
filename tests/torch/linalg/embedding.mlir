#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0, d1, d2) -> (d0, d1)>
#map2 = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
module attributes {torch.debug_module_name = "Embedding"} {
  ml_program.global private mutable @global_seed(dense<0> : tensor<i64>) : tensor<i64>
  func.func @forward(%arg0: tensor<10x6xf32>, %arg1: tensor<2x3xi64>, %arg2: tensor<4x5xf32>, %arg3: tensor<4x2xi64>) -> (tensor<2x3x6xf32>, tensor<4x2xf32>) {
    %c10 = arith.constant 10 : index
    %c5 = arith.constant 5 : index
    %c0_i64 = arith.constant 0 : i64
    %cst = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty() : tensor<2x3x6xf32>
    %1 = linalg.generic {indexing_maps = [#map1, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%arg1 : tensor<2x3xi64>) outs(%0 : tensor<2x3x6xf32>) {
    ^bb0(%in: i64, %out: f32):
      %5 = arith.index_cast %in : i64 to index
      %6 = arith.cmpi slt, %5, %c10 : index
      cf.assert %6, "index must be smaller than dim size"
      %7 = arith.cmpi sge, %in, %c0_i64 : i64
      cf.assert %7, "index must be larger or equal to 0"
      %8 = linalg.index 2 : index
      %extracted = tensor.extract %arg0[%5, %8] : tensor<10x6xf32>
      linalg.yield %extracted : f32
    } -> tensor<2x3x6xf32>
    %2 = tensor.empty() : tensor<4x2xf32>
    %3 = linalg.fill ins(%cst : f32) outs(%2 : tensor<4x2xf32>) -> tensor<4x2xf32>
    %4 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]} ins(%arg3 : tensor<4x2xi64>) outs(%3 : tensor<4x2xf32>) {
    ^bb0(%in: i64, %out: f32):
      %5 = linalg.index 0 : index
      %6 = arith.index_cast %in : i64 to index
      %7 = arith.cmpi slt, %6, %c5 : index
      cf.assert %7, "index must be smaller than dim size"
      %8 = arith.cmpi sge, %in, %c0_i64 : i64
      cf.assert %8, "index must be larger or equal to 0"
      %extracted = tensor.extract %arg2[%5, %6] : tensor<4x5xf32>
      linalg.yield %extracted : f32
    } -> tensor<4x2xf32>
    return %1, %4 : tensor<2x3x6xf32>, tensor<4x2xf32>
  }
}
