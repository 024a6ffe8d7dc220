// What mutants are made of: each element type, and operations that read where a value says.
module @types {
  func.func public @main(%a: tensor<4x8xf32>, %b: tensor<3xui8>, %i: tensor<i32>, %m: tensor<8xi1>, %n: tensor<4xi32>) -> (tensor<2x8xf32>, tensor<3xui8>, tensor<4x8xf32>, tensor<4xi32>) {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.dynamic_slice %a, %i, %zero, sizes = [2, 8] : (tensor<4x8xf32>, tensor<i32>, tensor<i32>) -> tensor<2x8xf32>
    %1 = stablehlo.divide %b, %b : tensor<3xui8>
    %2 = stablehlo.broadcast_in_dim %m, dims = [1] : (tensor<8xi1>) -> tensor<4x8xi1>
    %3 = stablehlo.exponential %a : tensor<4x8xf32>
    %4 = stablehlo.select %2, %3, %a : tensor<4x8xi1>, tensor<4x8xf32>
    %5 = stablehlo.divide %n, %n : tensor<4xi32>
    %6 = "stablehlo.gather"(%n, %5) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1>}> : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
    return %0, %1, %4, %6 : tensor<2x8xf32>, tensor<3xui8>, tensor<4x8xf32>, tensor<4xi32>
  }
}
