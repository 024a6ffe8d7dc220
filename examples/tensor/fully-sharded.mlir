// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The training step of data-parallel.mlir, fully sharded: each of four devices has a quarter of the
// batch and of each weight. Weights are gathered before use; their gradients are reduce-scattered.
#rows = #spmd.layout<mesh = [4], split = [[0], []]>
#mk = affine_map<(m, n, k) -> (m, k)>
#km = affine_map<(m, n, k) -> (k, m)>
#kn = affine_map<(m, n, k) -> (k, n)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>

func.func @main(%x: tensor<64x32xf32> {spmd.layout = #rows},
                %t: tensor<64x16xf32> {spmd.layout = #rows},
                %w1: tensor<32x48xf32> {spmd.layout = #rows},
                %w2: tensor<48x16xf32> {spmd.layout = #rows}, %rate: f32)
    -> (tensor<32x48xf32> {spmd.layout = #rows, spmd.alias = 2},
        tensor<48x16xf32> {spmd.layout = #rows, spmd.alias = 3}) {
  %xs = spmd.full_to_shard %x : tensor<64x32xf32> to tensor<16x32xf32>
  %ts = spmd.full_to_shard %t : tensor<64x16xf32> to tensor<16x16xf32>
  %u1 = spmd.full_to_shard %w1 : tensor<32x48xf32> to tensor<8x48xf32>
  %u2 = spmd.full_to_shard %w2 : tensor<48x16xf32> to tensor<12x16xf32>
  %no_h = arith.constant dense<0.0> : tensor<16x48xf32>
  %no_y = arith.constant dense<0.0> : tensor<16x16xf32>
  %no_w1 = arith.constant dense<0.0> : tensor<32x48xf32>
  %no_w2 = arith.constant dense<0.0> : tensor<48x16xf32>
  %v1 = spmd.all_gather ins(%u1 : tensor<8x48xf32>) outs(%no_w1 : tensor<32x48xf32>) axis = 0 -> tensor<32x48xf32>
  %v2 = spmd.all_gather ins(%u2 : tensor<12x16xf32>) outs(%no_w2 : tensor<48x16xf32>) axis = 0 -> tensor<48x16xf32>

  %a = linalg.matmul ins(%xs, %v1 : tensor<16x32xf32>, tensor<32x48xf32>) outs(%no_h : tensor<16x48xf32>) -> tensor<16x48xf32>
  %h = arith.maximumf %a, %no_h : tensor<16x48xf32>
  %y = linalg.matmul ins(%h, %v2 : tensor<16x48xf32>, tensor<48x16xf32>) outs(%no_y : tensor<16x16xf32>) -> tensor<16x16xf32>
  %dy = arith.subf %y, %ts : tensor<16x16xf32>
  %part2 = linalg.matmul indexing_maps = [#km, #kn, #mn]
      ins(%h, %dy : tensor<16x48xf32>, tensor<16x16xf32>) outs(%no_w2 : tensor<48x16xf32>) -> tensor<48x16xf32>
  %dh = linalg.matmul indexing_maps = [#mk, #nk, #mn]
      ins(%dy, %v2 : tensor<16x16xf32>, tensor<48x16xf32>) outs(%no_h : tensor<16x48xf32>) -> tensor<16x48xf32>
  %on = arith.cmpf ogt, %a, %no_h : tensor<16x48xf32>
  %da = arith.select %on, %dh, %no_h : tensor<16x48xi1>, tensor<16x48xf32>
  %part1 = linalg.matmul indexing_maps = [#km, #kn, #mn]
      ins(%xs, %da : tensor<16x32xf32>, tensor<16x48xf32>) outs(%no_w1 : tensor<32x48xf32>) -> tensor<32x48xf32>
  %dw2 = spmd.reduce_scatter sum ins(%part2 : tensor<48x16xf32>) outs(%u2 : tensor<12x16xf32>) axis = 0 -> tensor<12x16xf32>
  %dw1 = spmd.reduce_scatter sum ins(%part1 : tensor<32x48xf32>) outs(%u1 : tensor<8x48xf32>) axis = 0 -> tensor<8x48xf32>

  %rate1 = tensor.splat %rate : tensor<8x48xf32>
  %rate2 = tensor.splat %rate : tensor<12x16xf32>
  %step1 = arith.mulf %dw1, %rate1 : tensor<8x48xf32>
  %step2 = arith.mulf %dw2, %rate2 : tensor<12x16xf32>
  %next1 = arith.subf %u1, %step1 : tensor<8x48xf32>
  %next2 = arith.subf %u2, %step2 : tensor<12x16xf32>
  %new1 = spmd.shard_to_full %next1 : tensor<8x48xf32> to tensor<32x48xf32>
  %new2 = spmd.shard_to_full %next2 : tensor<12x16xf32> to tensor<48x16xf32>
  return %new1, %new2 : tensor<32x48xf32>, tensor<48x16xf32>
}
