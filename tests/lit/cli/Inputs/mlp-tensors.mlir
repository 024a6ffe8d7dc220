// examples/mlp on tensors.
#columns = #spmd.layout<mesh = [4], split = [[], [0]]>
#rows = #spmd.layout<mesh = [4], split = [[0], []]>
func.func @main(%x: tensor<32x64xf32>, %w1: tensor<64x128xf32> {spmd.layout = #columns, mgpu.role = "resident"},
                %w2: tensor<128x64xf32> {spmd.layout = #rows, mgpu.role = "resident"}) -> tensor<32x64xf32> {
  %a = spmd.full_to_shard %w1 : tensor<64x128xf32> to tensor<64x32xf32>
  %b = spmd.full_to_shard %w2 : tensor<128x64xf32> to tensor<32x64xf32>
  %no_h = arith.constant dense<0.0> : tensor<32x32xf32>
  %no_y = arith.constant dense<0.0> : tensor<32x64xf32>
  %p = linalg.matmul ins(%x, %a : tensor<32x64xf32>, tensor<64x32xf32>) outs(%no_h : tensor<32x32xf32>) -> tensor<32x32xf32>
  %h = arith.maximumf %p, %no_h : tensor<32x32xf32>
  %part = linalg.matmul ins(%h, %b : tensor<32x32xf32>, tensor<32x64xf32>) outs(%no_y : tensor<32x64xf32>) -> tensor<32x64xf32>
  %y = spmd.all_reduce sum ins(%part : tensor<32x64xf32>) outs(%part : tensor<32x64xf32>) -> tensor<32x64xf32>
  return %y : tensor<32x64xf32>
}
