// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A training step of y = relu(x w1) w2 on four devices. Each has a quarter of the rows of x and of
// the targets t, and all weights; the gradients are added by all_reduce.
#rows = #spmd.layout<mesh = [4], split = [[0], []]>
#mk = affine_map<(m, n, k) -> (m, k)>
#km = affine_map<(m, n, k) -> (k, m)>
#kn = affine_map<(m, n, k) -> (k, n)>
#nk = affine_map<(m, n, k) -> (n, k)>
#mn = affine_map<(m, n, k) -> (m, n)>
!x = tensor<16x32xf32>
!h = tensor<16x48xf32>
!y = tensor<16x16xf32>
!w1 = tensor<32x48xf32>
!w2 = tensor<48x16xf32>

func.func @main(%x: tensor<64x32xf32> {spmd.layout = #rows}, %t: tensor<64x16xf32> {spmd.layout = #rows},
                %w1: !w1, %w2: !w2, %rate: f32) -> (!w1 {spmd.alias = 2}, !w2 {spmd.alias = 3}) {
  %xs = spmd.full_to_shard %x : tensor<64x32xf32> to !x
  %ts = spmd.full_to_shard %t : tensor<64x16xf32> to !y
  %no_h = arith.constant dense<0.0> : !h
  %no_y = arith.constant dense<0.0> : !y
  %no_w1 = arith.constant dense<0.0> : !w1
  %no_w2 = arith.constant dense<0.0> : !w2
  %a = linalg.matmul ins(%xs, %w1 : !x, !w1) outs(%no_h : !h) -> !h
  %h = arith.maximumf %a, %no_h : !h
  %y = linalg.matmul ins(%h, %w2 : !h, !w2) outs(%no_y : !y) -> !y

  // The gradient of |y - t|^2 / 2, from the last weight to the first.
  %dy = arith.subf %y, %ts : !y
  %part2 = linalg.matmul indexing_maps = [#km, #kn, #mn] ins(%h, %dy : !h, !y) outs(%no_w2 : !w2) -> !w2
  %dh = linalg.matmul indexing_maps = [#mk, #nk, #mn] ins(%dy, %w2 : !y, !w2) outs(%no_h : !h) -> !h
  %on = arith.cmpf ogt, %a, %no_h : !h
  %da = arith.select %on, %dh, %no_h : tensor<16x48xi1>, !h
  %part1 = linalg.matmul indexing_maps = [#km, #kn, #mn] ins(%xs, %da : !x, !h) outs(%no_w1 : !w1) -> !w1
  %dw2 = spmd.all_reduce sum ins(%part2 : !w2) outs(%part2 : !w2) -> !w2
  %dw1 = spmd.all_reduce sum ins(%part1 : !w1) outs(%part1 : !w1) -> !w1

  %rate1 = tensor.splat %rate : !w1
  %rate2 = tensor.splat %rate : !w2
  %step1 = arith.mulf %dw1, %rate1 : !w1
  %step2 = arith.mulf %dw2, %rate2 : !w2
  %new1 = arith.subf %w1, %step1 : !w1
  %new2 = arith.subf %w2, %step2 : !w2
  return %new1, %new2 : !w1, !w2
}
