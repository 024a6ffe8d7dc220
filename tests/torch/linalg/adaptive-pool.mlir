#map = affine_map<(d0, d1, d2, d3, d4, d5) -> (d4, d5)>
#map1 = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d2, d3)>
#map2 = affine_map<(d0, d1, d2, d3, d4, d5) -> (d2, d3)>
#map3 = affine_map<(d0, d1, d2, d3) -> (d2, d3)>
#map4 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map5 = affine_map<(d0, d1) -> (d0, d1)>
#map6 = affine_map<(d0, d1) -> (d1)>
module attributes {torch.debug_module_name = "AdaptivePool"} {
  ml_program.global private mutable @global_seed(dense<0> : tensor<i64>) : tensor<i64>
  func.func @forward(%arg0: tensor<2x3x7x7xf32>) -> (tensor<2x27xf32>, tensor<2x27xf32>) {
    %cst = arith.constant dense_resource<torch_tensor_27_torch.bool> : tensor<27xi1>
    %cst_0 = arith.constant dense_resource<__elided__> : tensor<27xf32>
    %c1 = arith.constant 1 : index
    %c3 = arith.constant 3 : index
    %c7 = arith.constant 7 : index
    %cst_1 = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty() : tensor<4x4xi1>
    %1 = tensor.empty() : tensor<2x3x3x3xf32>
    %2 = tensor.empty() : tensor<3x3xf32>
    %3 = linalg.fill ins(%cst_1 : f32) outs(%1 : tensor<2x3x3x3xf32>) -> tensor<2x3x3x3xf32>
    %padded = tensor.pad %arg0 low[0, 0, 0, 0] high[0, 0, 1, 1] {
    ^bb0(%arg1: index, %arg2: index, %arg3: index, %arg4: index):
      tensor.yield %cst_1 : f32
    } : tensor<2x3x7x7xf32> to tensor<2x3x8x8xf32>
    %4:2 = linalg.generic {indexing_maps = [#map, #map1, #map2], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction"]} ins(%0 : tensor<4x4xi1>) outs(%3, %2 : tensor<2x3x3x3xf32>, tensor<3x3xf32>) {
    ^bb0(%in: i1, %out: f32, %out_2: f32):
      %9 = linalg.index 0 : index
      %10 = linalg.index 1 : index
      %11 = linalg.index 2 : index
      %12 = linalg.index 3 : index
      %13 = linalg.index 4 : index
      %14 = linalg.index 5 : index
      %15 = arith.muli %11, %c7 : index
      %16 = arith.floordivsi %15, %c3 : index
      %17 = arith.addi %11, %c1 : index
      %18 = arith.muli %17, %c7 : index
      %19 = arith.subi %18, %c1 : index
      %20 = arith.floordivsi %19, %c3 : index
      %21 = arith.addi %20, %c1 : index
      %22 = arith.muli %12, %c7 : index
      %23 = arith.floordivsi %22, %c3 : index
      %24 = arith.addi %12, %c1 : index
      %25 = arith.muli %24, %c7 : index
      %26 = arith.subi %25, %c1 : index
      %27 = arith.floordivsi %26, %c3 : index
      %28 = arith.addi %27, %c1 : index
      %29 = arith.addi %16, %13 : index
      %30 = arith.addi %23, %14 : index
      %extracted = tensor.extract %padded[%9, %10, %29, %30] : tensor<2x3x8x8xf32>
      %31 = arith.cmpi ult, %29, %21 : index
      %32 = arith.select %31, %extracted, %cst_1 : f32
      %33 = arith.cmpi ult, %30, %28 : index
      %34 = arith.select %33, %32, %cst_1 : f32
      %35 = arith.addf %34, %out : f32
      %36 = arith.subi %21, %16 : index
      %37 = arith.subi %28, %23 : index
      %38 = arith.muli %36, %37 : index
      %39 = arith.index_cast %38 : index to i64
      %40 = arith.sitofp %39 : i64 to f32
      linalg.yield %35, %40 : f32, f32
    } -> (tensor<2x3x3x3xf32>, tensor<3x3xf32>)
    %5 = linalg.generic {indexing_maps = [#map3, #map4], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%4#1 : tensor<3x3xf32>) outs(%4#0 : tensor<2x3x3x3xf32>) {
    ^bb0(%in: f32, %out: f32):
      %9 = arith.divf %out, %in : f32
      linalg.yield %9 : f32
    } -> tensor<2x3x3x3xf32>
    %collapsed = tensor.collapse_shape %5 [[0], [1, 2, 3]] : tensor<2x3x3x3xf32> into tensor<2x27xf32>
    %6 = tensor.empty() : tensor<2x27xf32>
    %7 = linalg.generic {indexing_maps = [#map6, #map5, #map6, #map5], iterator_types = ["parallel", "parallel"]} ins(%cst, %collapsed, %cst_0 : tensor<27xi1>, tensor<2x27xf32>, tensor<27xf32>) outs(%6 : tensor<2x27xf32>) {
    ^bb0(%in: i1, %in_2: f32, %in_3: f32, %out: f32):
      %9 = arith.select %in, %in_2, %in_3 : f32
      linalg.yield %9 : f32
    } -> tensor<2x27xf32>
    return %collapsed, %7 : tensor<2x27xf32>, tensor<2x27xf32>
  }
}

{-#
  dialect_resources: {
    builtin: {
      torch_tensor_27_torch.bool: "0x01000000010001010001000100000101000101010001000001010001010100"
    }
  }
#-}
