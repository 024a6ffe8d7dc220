// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The training step of data-parallel.mlir with tensor parallelism: each of four devices has a
// quarter of the columns of w1 and of the rows of w2; the partial sums of y are added by all_reduce.
#cols = #spmd.layout<mesh = [4], split = [[], [0]]>
#rows = #spmd.layout<mesh = [4], split = [[0], []]>
#mk = affine_map<(m, n, k) -> (m, k)>
#km = affine_map<(m, n, k) -> (k, m)>
#kn = affine_map<(m, n, k) -> (k, n)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>

func.func @main(%x: tensor<64x32xf32>, %t: tensor<64x16xf32>,
                %w1: tensor<32x48xf32> {spmd.layout = #cols},
                %w2: tensor<48x16xf32> {spmd.layout = #rows}, %rate: f32)
    -> (tensor<32x48xf32> {spmd.layout = #cols, spmd.alias = 2},
        tensor<48x16xf32> {spmd.layout = #rows, spmd.alias = 3}) {
  %u1 = spmd.full_to_shard %w1 : tensor<32x48xf32> to tensor<32x12xf32>
  %u2 = spmd.full_to_shard %w2 : tensor<48x16xf32> to tensor<12x16xf32>
  %no_h = arith.constant dense<0.0> : tensor<64x12xf32>
  %no_y = arith.constant dense<0.0> : tensor<64x16xf32>
  %no_w1 = arith.constant dense<0.0> : tensor<32x12xf32>
  %no_w2 = arith.constant dense<0.0> : tensor<12x16xf32>

  %a = linalg.matmul ins(%x, %u1 : tensor<64x32xf32>, tensor<32x12xf32>) outs(%no_h : tensor<64x12xf32>) -> tensor<64x12xf32>
  %h = arith.maximumf %a, %no_h : tensor<64x12xf32>
  %part = linalg.matmul ins(%h, %u2 : tensor<64x12xf32>, tensor<12x16xf32>) outs(%no_y : tensor<64x16xf32>) -> tensor<64x16xf32>
  %y = spmd.all_reduce sum ins(%part : tensor<64x16xf32>) outs(%part : tensor<64x16xf32>) -> tensor<64x16xf32>

  %dy = arith.subf %y, %t : tensor<64x16xf32>
  %dw2 = linalg.matmul indexing_maps = [#km, #kn, #mn]
      ins(%h, %dy : tensor<64x12xf32>, tensor<64x16xf32>) outs(%no_w2 : tensor<12x16xf32>) -> tensor<12x16xf32>
  %dh = linalg.matmul indexing_maps = [#mk, #nk, #mn]
      ins(%dy, %u2 : tensor<64x16xf32>, tensor<12x16xf32>) outs(%no_h : tensor<64x12xf32>) -> tensor<64x12xf32>
  %on = arith.cmpf ogt, %a, %no_h : tensor<64x12xf32>
  %da = arith.select %on, %dh, %no_h : tensor<64x12xi1>, tensor<64x12xf32>
  %dw1 = linalg.matmul indexing_maps = [#km, #kn, #mn]
      ins(%x, %da : tensor<64x32xf32>, tensor<64x12xf32>) outs(%no_w1 : tensor<32x12xf32>) -> tensor<32x12xf32>

  %rate1 = tensor.splat %rate : tensor<32x12xf32>
  %rate2 = tensor.splat %rate : tensor<12x16xf32>
  %step1 = arith.mulf %dw1, %rate1 : tensor<32x12xf32>
  %step2 = arith.mulf %dw2, %rate2 : tensor<12x16xf32>
  %next1 = arith.subf %u1, %step1 : tensor<32x12xf32>
  %next2 = arith.subf %u2, %step2 : tensor<12x16xf32>
  %new1 = spmd.shard_to_full %next1 : tensor<32x12xf32> to tensor<32x48xf32>
  %new2 = spmd.shard_to_full %next2 : tensor<12x16xf32> to tensor<48x16xf32>
  return %new1, %new2 : tensor<32x48xf32>, tensor<48x16xf32>
}
