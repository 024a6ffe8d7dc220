// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A training step of a two-layer network, written as for one device. Two annotations of weights and
// two of the batch make it fully sharded (FSDP) over four devices: weights are gathered before use,
// and their gradients are reduce-scattered.
shard.grid @grid(shape = 4)
#mk = affine_map<(m, n, k) -> (m, k)>
#km = affine_map<(m, n, k) -> (k, m)>
#kn = affine_map<(m, n, k) -> (k, n)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>

func.func @main(%x: tensor<64x32xf32>, %t: tensor<64x16xf32>, %w1: tensor<32x48xf32>,
                %w2: tensor<48x16xf32>, %rate: f32)
    -> (tensor<32x48xf32> {spmd.alias = 2}, tensor<48x16xf32> {spmd.alias = 3}) {
  %rows = shard.sharding @grid split_axes = [[0]] : !shard.sharding
  %xs = shard.shard %x to %rows : tensor<64x32xf32>
  %ts = shard.shard %t to %rows : tensor<64x16xf32>
  %u1 = shard.shard %w1 to %rows : tensor<32x48xf32>
  %u2 = shard.shard %w2 to %rows : tensor<48x16xf32>
  %no_h = arith.constant dense<0.0> : tensor<64x48xf32>
  %no_y = arith.constant dense<0.0> : tensor<64x16xf32>
  %no_w1 = arith.constant dense<0.0> : tensor<32x48xf32>
  %no_w2 = arith.constant dense<0.0> : tensor<48x16xf32>

  %a = linalg.matmul ins(%xs, %u1 : tensor<64x32xf32>, tensor<32x48xf32>) outs(%no_h : tensor<64x48xf32>) -> tensor<64x48xf32>
  %h = arith.maximumf %a, %no_h : tensor<64x48xf32>
  %y = linalg.matmul ins(%h, %u2 : tensor<64x48xf32>, tensor<48x16xf32>) outs(%no_y : tensor<64x16xf32>) -> tensor<64x16xf32>
  %dy = arith.subf %y, %ts : tensor<64x16xf32>
  %dw2 = linalg.matmul indexing_maps = [#km, #kn, #mn]
      ins(%h, %dy : tensor<64x48xf32>, tensor<64x16xf32>) outs(%no_w2 : tensor<48x16xf32>) -> tensor<48x16xf32>
  %dh = linalg.matmul indexing_maps = [#mk, #nk, #mn]
      ins(%dy, %u2 : tensor<64x16xf32>, tensor<48x16xf32>) outs(%no_h : tensor<64x48xf32>) -> tensor<64x48xf32>
  %on = arith.cmpf ogt, %a, %no_h : tensor<64x48xf32>
  %da = arith.select %on, %dh, %no_h : tensor<64x48xi1>, tensor<64x48xf32>
  %dw1 = linalg.matmul indexing_maps = [#km, #kn, #mn]
      ins(%xs, %da : tensor<64x32xf32>, tensor<64x48xf32>) outs(%no_w1 : tensor<32x48xf32>) -> tensor<32x48xf32>

  %rate1 = tensor.splat %rate : tensor<32x48xf32>
  %rate2 = tensor.splat %rate : tensor<48x16xf32>
  %step1 = arith.mulf %dw1, %rate1 : tensor<32x48xf32>
  %step2 = arith.mulf %dw2, %rate2 : tensor<48x16xf32>
  %new1 = arith.subf %u1, %step1 : tensor<32x48xf32>
  %new2 = arith.subf %u2, %step2 : tensor<48x16xf32>
  return %new1, %new2 : tensor<32x48xf32>, tensor<48x16xf32>
}
