// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Two transformer layers on a grid of 2 x 2 devices: the batch over axis 0, and tensor parallelism
// over axis 1 as in Megatron-LM. The annotations of the layer's input and output say that between
// layers the sequence is over axis 1 too (sequence parallelism), so that the sums over the heads
// and over the hidden units are reduce-scattered.
shard.grid @grid(shape = 2x2)
#x = affine_map<(b, s, n, k) -> (b, s, k)>
#w = affine_map<(b, s, n, k) -> (k, n)>
#y = affine_map<(b, s, n, k) -> (b, s, n)>

func.func private @product(%x: tensor<2x16x64xf32>, %w: tensor<64x64xf32>) -> tensor<2x16x64xf32> {
  %zero = arith.constant dense<0.0> : tensor<2x16x64xf32>
  %r = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<2x16x64xf32>, tensor<64x64xf32>) outs(%zero : tensor<2x16x64xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %q = arith.addf %c, %p : f32
    linalg.yield %q : f32
  } -> tensor<2x16x64xf32>
  return %r : tensor<2x16x64xf32>
}

// The eight heads of 8: batch x heads x sequence x 8.
func.func private @heads(%x: tensor<2x16x64xf32>) -> tensor<2x8x16x8xf32> {
  %h = tensor.expand_shape %x [[0], [1], [2, 3]] output_shape [2, 16, 8, 8] : tensor<2x16x64xf32> into tensor<2x16x8x8xf32>
  %e = tensor.empty() : tensor<2x8x16x8xf32>
  %r = linalg.transpose ins(%h : tensor<2x16x8x8xf32>) outs(%e : tensor<2x8x16x8xf32>) permutation = [0, 2, 1, 3]
  return %r : tensor<2x8x16x8xf32>
}

func.func private @attention(%q: tensor<2x8x16x8xf32>, %k: tensor<2x8x16x8xf32>, %v: tensor<2x8x16x8xf32>) -> tensor<2x16x64xf32> {
  %no_s = arith.constant dense<0.0> : tensor<2x8x16x16xf32>
  %s = linalg.generic {indexing_maps = [affine_map<(b, h, i, j, k) -> (b, h, i, k)>, affine_map<(b, h, i, j, k) -> (b, h, j, k)>,
                                        affine_map<(b, h, i, j, k) -> (b, h, i, j)>],
                       iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%q, %k : tensor<2x8x16x8xf32>, tensor<2x8x16x8xf32>) outs(%no_s : tensor<2x8x16x16xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %t = arith.addf %c, %p : f32
    linalg.yield %t : f32
  } -> tensor<2x8x16x16xf32>
  %scale = arith.constant dense<0.353553391> : tensor<2x8x16x16xf32>
  %scaled = arith.mulf %s, %scale : tensor<2x8x16x16xf32>
  %p = linalg.softmax dimension(3) ins(%scaled : tensor<2x8x16x16xf32>) outs(%no_s : tensor<2x8x16x16xf32>) -> tensor<2x8x16x16xf32>
  %no_o = arith.constant dense<0.0> : tensor<2x16x8x8xf32>
  %o = linalg.generic {indexing_maps = [affine_map<(b, i, h, k, j) -> (b, h, i, j)>, affine_map<(b, i, h, k, j) -> (b, h, j, k)>,
                                        affine_map<(b, i, h, k, j) -> (b, i, h, k)>],
                       iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%p, %v : tensor<2x8x16x16xf32>, tensor<2x8x16x8xf32>) outs(%no_o : tensor<2x16x8x8xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %m = arith.mulf %a, %b : f32
    %t = arith.addf %c, %m : f32
    linalg.yield %t : f32
  } -> tensor<2x16x8x8xf32>
  %r = tensor.collapse_shape %o [[0], [1], [2, 3]] : tensor<2x16x8x8xf32> into tensor<2x16x64xf32>
  return %r : tensor<2x16x64xf32>
}

func.func private @layer(%x: tensor<2x16x64xf32>, %wq: tensor<64x64xf32>, %wk: tensor<64x64xf32>, %wv: tensor<64x64xf32>,
                         %wo: tensor<64x64xf32>, %w1: tensor<64x64xf32>, %w2: tensor<64x64xf32>) -> tensor<2x16x64xf32> {
  %sequence = shard.sharding @grid split_axes = [[0], [1]] : !shard.sharding
  %xs = shard.shard %x to %sequence : tensor<2x16x64xf32>
  %q = func.call @product(%xs, %wq) : (tensor<2x16x64xf32>, tensor<64x64xf32>) -> tensor<2x16x64xf32>
  %k = func.call @product(%xs, %wk) : (tensor<2x16x64xf32>, tensor<64x64xf32>) -> tensor<2x16x64xf32>
  %v = func.call @product(%xs, %wv) : (tensor<2x16x64xf32>, tensor<64x64xf32>) -> tensor<2x16x64xf32>
  %qh = func.call @heads(%q) : (tensor<2x16x64xf32>) -> tensor<2x8x16x8xf32>
  %kh = func.call @heads(%k) : (tensor<2x16x64xf32>) -> tensor<2x8x16x8xf32>
  %vh = func.call @heads(%v) : (tensor<2x16x64xf32>) -> tensor<2x8x16x8xf32>
  %a = func.call @attention(%qh, %kh, %vh) : (tensor<2x8x16x8xf32>, tensor<2x8x16x8xf32>, tensor<2x8x16x8xf32>) -> tensor<2x16x64xf32>
  %o = func.call @product(%a, %wo) : (tensor<2x16x64xf32>, tensor<64x64xf32>) -> tensor<2x16x64xf32>
  %y = arith.addf %xs, %o : tensor<2x16x64xf32>
  %ys = shard.shard %y to %sequence : tensor<2x16x64xf32>
  %h = func.call @product(%ys, %w1) : (tensor<2x16x64xf32>, tensor<64x64xf32>) -> tensor<2x16x64xf32>
  %g = math.tanh %h : tensor<2x16x64xf32>
  %f = func.call @product(%g, %w2) : (tensor<2x16x64xf32>, tensor<64x64xf32>) -> tensor<2x16x64xf32>
  %z = arith.addf %ys, %f : tensor<2x16x64xf32>
  %zs = shard.shard %z to %sequence : tensor<2x16x64xf32>
  return %zs : tensor<2x16x64xf32>
}

func.func @main(%x: tensor<2x16x64xf32>, %wq: tensor<64x64xf32>, %wk: tensor<64x64xf32>, %wv: tensor<64x64xf32>,
                %wo: tensor<64x64xf32>, %w1: tensor<64x64xf32>, %w2: tensor<64x64xf32>) -> tensor<2x16x64xf32> {
  %columns = shard.sharding @grid split_axes = [[], [1]] : !shard.sharding
  %rows = shard.sharding @grid split_axes = [[1]] : !shard.sharding
  %q = shard.shard %wq to %columns : tensor<64x64xf32>
  %k = shard.shard %wk to %columns : tensor<64x64xf32>
  %v = shard.shard %wv to %columns : tensor<64x64xf32>
  %o = shard.shard %wo to %rows : tensor<64x64xf32>
  %u1 = shard.shard %w1 to %columns : tensor<64x64xf32>
  %u2 = shard.shard %w2 to %rows : tensor<64x64xf32>
  %y = func.call @layer(%x, %q, %k, %v, %o, %u1, %u2) : (tensor<2x16x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<2x16x64xf32>
  %z = func.call @layer(%y, %q, %k, %v, %o, %u1, %u2) : (tensor<2x16x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<2x16x64xf32>
  return %z : tensor<2x16x64xf32>
}
