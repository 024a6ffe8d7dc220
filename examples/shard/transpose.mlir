// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Sums along rows, then along columns, as the two halves of a two-dimensional transform are
// computed: between them rows become whole columns, with one all_to_all.
shard.grid @grid(shape = 4)
#in = affine_map<(i, j, k) -> (i, k)>
#factor = affine_map<(i, j, k) -> (j, k)>
#out = affine_map<(i, j, k) -> (i, j)>

func.func private @rows(%x: tensor<32x32xf32>, %f: tensor<32x32xf32>) -> tensor<32x32xf32> {
  %zero = arith.constant dense<0.0> : tensor<32x32xf32>
  %y = linalg.matmul indexing_maps = [#in, #factor, #out]
      ins(%x, %f : tensor<32x32xf32>, tensor<32x32xf32>) outs(%zero : tensor<32x32xf32>) -> tensor<32x32xf32>
  return %y : tensor<32x32xf32>
}

func.func @main(%x: tensor<32x32xf32>, %f: tensor<32x32xf32>) -> tensor<32x32xf32> {
  %sharding = shard.sharding @grid split_axes = [[0]] : !shard.sharding
  %xs = shard.shard %x to %sharding : tensor<32x32xf32>
  %y = func.call @rows(%xs, %f) : (tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xf32>
  %empty = tensor.empty() : tensor<32x32xf32>
  %t = linalg.transpose ins(%y : tensor<32x32xf32>) outs(%empty : tensor<32x32xf32>) permutation = [1, 0]
  %ts = shard.shard %t to %sharding : tensor<32x32xf32>
  %z = func.call @rows(%ts, %f) : (tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xf32>
  return %z : tensor<32x32xf32>
}
