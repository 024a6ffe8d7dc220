// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A training step of a GPT-style model as a pipeline of four stages: each is a
// block of causal attention and a layer of 16 x 16, with its weights in one
// tensor, on a mesh of two devices that share the sequences of a microbatch.
// Eight microbatches of two sequences go forward and backward; backward work
// computes the block again. Then each mesh updates its weights. Try it with
// --schedule 1f1b.
#topology = #mpmd.topology<<"m0" : <["d"=2]>>, <"m1" : <["d"=2]>>, <"m2" : <["d"=2]>>, <"m3" : <["d"=2]>>>
!x = tensor<2x8x16xf32>
!p = tensor<2x8x8xf32>
!m = tensor<16x16xf32>
!w = tensor<96x16xf32>
!x0 = !mpmd.mesh_tensor<"m0", !x, sharding=<@m0, [{"d"}, {}, {}]>>
!x1 = !mpmd.mesh_tensor<"m1", !x, sharding=<@m1, [{"d"}, {}, {}]>>
!x2 = !mpmd.mesh_tensor<"m2", !x, sharding=<@m2, [{"d"}, {}, {}]>>
!x3 = !mpmd.mesh_tensor<"m3", !x, sharding=<@m3, [{"d"}, {}, {}]>>
!w0 = !mpmd.mesh_tensor<"m0", !w>
!w1 = !mpmd.mesh_tensor<"m1", !w>
!w2 = !mpmd.mesh_tensor<"m2", !w>
!w3 = !mpmd.mesh_tensor<"m3", !w>

func.func private @matrices(%w: !w) -> (!m, !m, !m, !m, !m, !m) {
  %m0 = stablehlo.slice %w [0:16, 0:16] : (!w) -> !m
  %m1 = stablehlo.slice %w [16:32, 0:16] : (!w) -> !m
  %m2 = stablehlo.slice %w [32:48, 0:16] : (!w) -> !m
  %m3 = stablehlo.slice %w [48:64, 0:16] : (!w) -> !m
  %m4 = stablehlo.slice %w [64:80, 0:16] : (!w) -> !m
  %m5 = stablehlo.slice %w [80:96, 0:16] : (!w) -> !m
  return %m0, %m1, %m2, %m3, %m4, %m5 : !m, !m, !m, !m, !m, !m
}

func.func private @times(%x: !x, %m: !m) -> !x {
  %0 = stablehlo.dot_general %x, %m, contracting_dims = [2] x [0] : (!x, !m) -> !x
  return %0 : !x
}

// The gradients of x and m, where that of x m is dy.
func.func private @timesBack(%x: !x, %m: !m, %dy: !x) -> (!x, !m) {
  %dx = stablehlo.dot_general %dy, %m, contracting_dims = [2] x [1] : (!x, !m) -> !x
  %dm = stablehlo.dot_general %x, %dy, contracting_dims = [0, 1] x [0, 1] : (!x, !x) -> !m
  return %dx, %dm : !x, !m
}

// Queries, keys and values; the attention p and what it takes of the values; its
// sum with x; the hidden layer; the result.
func.func private @block(%x: !x, %w: !w) -> (!x, !x, !x, !p, !x, !x, !x, !x) {
  %m:6 = func.call @matrices(%w) : (!w) -> (!m, !m, !m, !m, !m, !m)
  %q = func.call @times(%x, %m#0) : (!x, !m) -> !x
  %k = func.call @times(%x, %m#1) : (!x, !m) -> !x
  %v = func.call @times(%x, %m#2) : (!x, !m) -> !x
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %quarter = stablehlo.constant dense<0.25> : !p
  %never = stablehlo.constant dense<0.0> : !p
  %qk = stablehlo.dot_general %q, %k, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (!x, !x) -> !p
  %scores = stablehlo.multiply %qk, %quarter : !p
  %row = stablehlo.iota dim = 1 : tensor<2x8x8xi32>
  %column = stablehlo.iota dim = 2 : tensor<2x8x8xi32>
  %before = stablehlo.compare GE, %row, %column : (tensor<2x8x8xi32>, tensor<2x8x8xi32>) -> tensor<2x8x8xi1>
  %exp = stablehlo.exponential %scores : !p
  %e = stablehlo.select %before, %exp, %never : tensor<2x8x8xi1>, !p
  %sum = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [2] : (!p, tensor<f32>) -> tensor<2x8xf32>
  %sums = stablehlo.broadcast_in_dim %sum, dims = [0, 1] : (tensor<2x8xf32>) -> !p
  %p = stablehlo.divide %e, %sums : !p
  %o = stablehlo.dot_general %p, %v, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (!p, !x) -> !x
  %brought = func.call @times(%o, %m#3) : (!x, !m) -> !x
  %a = stablehlo.add %x, %brought : !x
  %none = stablehlo.constant dense<0.0> : !x
  %layer = func.call @times(%a, %m#4) : (!x, !m) -> !x
  %h = stablehlo.maximum %layer, %none : !x
  %back = func.call @times(%h, %m#5) : (!x, !m) -> !x
  %y = stablehlo.add %a, %back : !x
  return %q, %k, %v, %p, %o, %a, %h, %y : !x, !x, !x, !p, !x, !x, !x, !x
}

// The gradient of x, and that of the weights added to g.
func.func private @backward(%x: !x, %w: !w, %dy: !x, %g: !w) -> (!x, !w) {
  %m:6 = func.call @matrices(%w) : (!w) -> (!m, !m, !m, !m, !m, !m)
  %b:8 = func.call @block(%x, %w) : (!x, !w) -> (!x, !x, !x, !p, !x, !x, !x, !x)
  %none = stablehlo.constant dense<0.0> : !x
  %dh:2 = func.call @timesBack(%b#6, %m#5, %dy) : (!x, !m, !x) -> (!x, !m)
  %on = stablehlo.compare GT, %b#6, %none : (!x, !x) -> tensor<2x8x16xi1>
  %dl = stablehlo.select %on, %dh#0, %none : tensor<2x8x16xi1>, !x
  %dlayer:2 = func.call @timesBack(%b#5, %m#4, %dl) : (!x, !m, !x) -> (!x, !m)
  %da = stablehlo.add %dy, %dlayer#0 : !x
  %do:2 = func.call @timesBack(%b#4, %m#3, %da) : (!x, !m, !x) -> (!x, !m)
  %dp = stablehlo.dot_general %do#0, %b#2, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (!x, !x) -> !p
  %dv = stablehlo.dot_general %b#3, %do#0, batching_dims = [0] x [0], contracting_dims = [1] x [1] : (!p, !x) -> !x
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %quarter = stablehlo.constant dense<0.25> : !p
  %pdp = stablehlo.multiply %b#3, %dp : !p
  %sum = stablehlo.reduce(%pdp init: %zero) applies stablehlo.add across dimensions = [2] : (!p, tensor<f32>) -> tensor<2x8xf32>
  %sums = stablehlo.broadcast_in_dim %sum, dims = [0, 1] : (tensor<2x8xf32>) -> !p
  %less = stablehlo.subtract %dp, %sums : !p
  %ds = stablehlo.multiply %b#3, %less : !p
  %dqk = stablehlo.multiply %ds, %quarter : !p
  %dq = stablehlo.dot_general %dqk, %b#1, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (!p, !x) -> !x
  %dk = stablehlo.dot_general %dqk, %b#0, batching_dims = [0] x [0], contracting_dims = [1] x [1] : (!p, !x) -> !x
  %fromq:2 = func.call @timesBack(%x, %m#0, %dq) : (!x, !m, !x) -> (!x, !m)
  %fromk:2 = func.call @timesBack(%x, %m#1, %dk) : (!x, !m, !x) -> (!x, !m)
  %fromv:2 = func.call @timesBack(%x, %m#2, %dv) : (!x, !m, !x) -> (!x, !m)
  %dx0 = stablehlo.add %da, %fromq#0 : !x
  %dx1 = stablehlo.add %dx0, %fromk#0 : !x
  %dx = stablehlo.add %dx1, %fromv#0 : !x
  %dw = stablehlo.concatenate %fromq#1, %fromk#1, %fromv#1, %do#1, %dlayer#1, %dh#1, dim = 0 : (!m, !m, !m, !m, !m, !m) -> !w
  %sumw = stablehlo.add %g, %dw : !w
  return %dx, %sumw : !x, !w
}

func.func private @microbatch(%x0: !x0, %t: !x3, %w0: !w0, %w1: !w1, %w2: !w2, %w3: !w3,
    %g0: !w0, %g1: !w1, %g2: !w2, %g3: !w3) -> (!w0, !w1, !w2, !w3) attributes {topology = #topology} {
  %y0 = mpmd.fragment<mesh="m0", origin=["block0"]> (%x0, %w0) (%x: !x, %w: !w) {
    %b:8 = func.call @block(%x, %w) : (!x, !w) -> (!x, !x, !x, !p, !x, !x, !x, !x)
    mpmd.return %b#7 : !x
  } : (!x0, !w0) -> !x0
  %x1 = mpmd.transfer %y0 : (!x0) -> !x1
  %y1 = mpmd.fragment<mesh="m1", origin=["block1"]> (%x1, %w1) (%x: !x, %w: !w) {
    %b:8 = func.call @block(%x, %w) : (!x, !w) -> (!x, !x, !x, !p, !x, !x, !x, !x)
    mpmd.return %b#7 : !x
  } : (!x1, !w1) -> !x1
  %x2 = mpmd.transfer %y1 : (!x1) -> !x2
  %y2 = mpmd.fragment<mesh="m2", origin=["block2"]> (%x2, %w2) (%x: !x, %w: !w) {
    %b:8 = func.call @block(%x, %w) : (!x, !w) -> (!x, !x, !x, !p, !x, !x, !x, !x)
    mpmd.return %b#7 : !x
  } : (!x2, !w2) -> !x2
  %x3 = mpmd.transfer %y2 : (!x2) -> !x3
  // The gradient of |y - t|^2 / 2.
  %d3 = mpmd.fragment<mesh="m3", origin=["block3"]> (%x3, %w3, %t) (%x: !x, %w: !w, %u: !x) {
    %b:8 = func.call @block(%x, %w) : (!x, !w) -> (!x, !x, !x, !p, !x, !x, !x, !x)
    %d = stablehlo.subtract %b#7, %u : !x
    mpmd.return %d : !x
  } : (!x3, !w3, !x3) -> !x3
  %b3:2 = mpmd.fragment<mesh="m3", origin=["block3"(1)]> (%x3, %w3, %d3, %g3) (%x: !x, %w: !w, %d: !x, %g: !w) {
    %b:2 = func.call @backward(%x, %w, %d, %g) : (!x, !w, !x, !w) -> (!x, !w)
    mpmd.return %b#0, %b#1 : !x, !w
  } : (!x3, !w3, !x3, !w3) -> (!x3, !w3)
  %d2 = mpmd.transfer %b3#0 : (!x3) -> !x2
  %b2:2 = mpmd.fragment<mesh="m2", origin=["block2"(1)]> (%x2, %w2, %d2, %g2) (%x: !x, %w: !w, %d: !x, %g: !w) {
    %b:2 = func.call @backward(%x, %w, %d, %g) : (!x, !w, !x, !w) -> (!x, !w)
    mpmd.return %b#0, %b#1 : !x, !w
  } : (!x2, !w2, !x2, !w2) -> (!x2, !w2)
  %d1 = mpmd.transfer %b2#0 : (!x2) -> !x1
  %b1:2 = mpmd.fragment<mesh="m1", origin=["block1"(1)]> (%x1, %w1, %d1, %g1) (%x: !x, %w: !w, %d: !x, %g: !w) {
    %b:2 = func.call @backward(%x, %w, %d, %g) : (!x, !w, !x, !w) -> (!x, !w)
    mpmd.return %b#0, %b#1 : !x, !w
  } : (!x1, !w1, !x1, !w1) -> (!x1, !w1)
  %d0 = mpmd.transfer %b1#0 : (!x1) -> !x0
  %b0:2 = mpmd.fragment<mesh="m0", origin=["block0"(1)]> (%x0, %w0, %d0, %g0) (%x: !x, %w: !w, %d: !x, %g: !w) {
    %b:2 = func.call @backward(%x, %w, %d, %g) : (!x, !w, !x, !w) -> (!x, !w)
    mpmd.return %b#0, %b#1 : !x, !w
  } : (!x0, !w0, !x0, !w0) -> (!x0, !w0)
  return %b0#1, %b1#1, %b2#1, %b3#1 : !w0, !w1, !w2, !w3
}

func.func @main(%x0: !x0, %x1: !x0, %x2: !x0, %x3: !x0, %x4: !x0, %x5: !x0, %x6: !x0, %x7: !x0,
    %t0: !x3, %t1: !x3, %t2: !x3, %t3: !x3, %t4: !x3, %t5: !x3, %t6: !x3, %t7: !x3,
    %w0: !w0 {tf.aliasing_output = 0 : i32}, %w1: !w1 {tf.aliasing_output = 1 : i32}, %w2: !w2 {tf.aliasing_output = 2 : i32}, %w3: !w3 {tf.aliasing_output = 3 : i32})
    -> (!w0, !w1, !w2, !w3) attributes {topology = #topology} {
  %z0 = mpmd.fragment<mesh="m0", origin=["zero"]> () () {
    %0 = stablehlo.constant dense<0.0> : !w mpmd.return %0 : !w } : () -> !w0
  %z1 = mpmd.fragment<mesh="m1", origin=["zero"]> () () {
    %0 = stablehlo.constant dense<0.0> : !w mpmd.return %0 : !w } : () -> !w1
  %z2 = mpmd.fragment<mesh="m2", origin=["zero"]> () () {
    %0 = stablehlo.constant dense<0.0> : !w mpmd.return %0 : !w } : () -> !w2
  %z3 = mpmd.fragment<mesh="m3", origin=["zero"]> () () {
    %0 = stablehlo.constant dense<0.0> : !w mpmd.return %0 : !w } : () -> !w3
  %s0:4 = mpmd.call @microbatch(%x0, %t0, %w0, %w1, %w2, %w3, %z0, %z1, %z2, %z3) {call_counter = 0 : ui32}
      : (!x0, !x3, !w0, !w1, !w2, !w3, !w0, !w1, !w2, !w3) -> (!w0, !w1, !w2, !w3)
  %s1:4 = mpmd.call @microbatch(%x1, %t1, %w0, %w1, %w2, %w3, %s0#0, %s0#1, %s0#2, %s0#3) {call_counter = 1 : ui32}
      : (!x0, !x3, !w0, !w1, !w2, !w3, !w0, !w1, !w2, !w3) -> (!w0, !w1, !w2, !w3)
  %s2:4 = mpmd.call @microbatch(%x2, %t2, %w0, %w1, %w2, %w3, %s1#0, %s1#1, %s1#2, %s1#3) {call_counter = 2 : ui32}
      : (!x0, !x3, !w0, !w1, !w2, !w3, !w0, !w1, !w2, !w3) -> (!w0, !w1, !w2, !w3)
  %s3:4 = mpmd.call @microbatch(%x3, %t3, %w0, %w1, %w2, %w3, %s2#0, %s2#1, %s2#2, %s2#3) {call_counter = 3 : ui32}
      : (!x0, !x3, !w0, !w1, !w2, !w3, !w0, !w1, !w2, !w3) -> (!w0, !w1, !w2, !w3)
  %s4:4 = mpmd.call @microbatch(%x4, %t4, %w0, %w1, %w2, %w3, %s3#0, %s3#1, %s3#2, %s3#3) {call_counter = 4 : ui32}
      : (!x0, !x3, !w0, !w1, !w2, !w3, !w0, !w1, !w2, !w3) -> (!w0, !w1, !w2, !w3)
  %s5:4 = mpmd.call @microbatch(%x5, %t5, %w0, %w1, %w2, %w3, %s4#0, %s4#1, %s4#2, %s4#3) {call_counter = 5 : ui32}
      : (!x0, !x3, !w0, !w1, !w2, !w3, !w0, !w1, !w2, !w3) -> (!w0, !w1, !w2, !w3)
  %s6:4 = mpmd.call @microbatch(%x6, %t6, %w0, %w1, %w2, %w3, %s5#0, %s5#1, %s5#2, %s5#3) {call_counter = 6 : ui32}
      : (!x0, !x3, !w0, !w1, !w2, !w3, !w0, !w1, !w2, !w3) -> (!w0, !w1, !w2, !w3)
  %s7:4 = mpmd.call @microbatch(%x7, %t7, %w0, %w1, %w2, %w3, %s6#0, %s6#1, %s6#2, %s6#3) {call_counter = 7 : ui32}
      : (!x0, !x3, !w0, !w1, !w2, !w3, !w0, !w1, !w2, !w3) -> (!w0, !w1, !w2, !w3)
  %n0 = mpmd.fragment<mesh="m0", origin=["update"]> (%w0, %s7#0) (%w: !w, %g: !w) {
    %0 = func.call @update(%w, %g) : (!w, !w) -> !w mpmd.return %0 : !w } : (!w0, !w0) -> !w0
  %n1 = mpmd.fragment<mesh="m1", origin=["update"]> (%w1, %s7#1) (%w: !w, %g: !w) {
    %0 = func.call @update(%w, %g) : (!w, !w) -> !w mpmd.return %0 : !w } : (!w1, !w1) -> !w1
  %n2 = mpmd.fragment<mesh="m2", origin=["update"]> (%w2, %s7#2) (%w: !w, %g: !w) {
    %0 = func.call @update(%w, %g) : (!w, !w) -> !w mpmd.return %0 : !w } : (!w2, !w2) -> !w2
  %n3 = mpmd.fragment<mesh="m3", origin=["update"]> (%w3, %s7#3) (%w: !w, %g: !w) {
    %0 = func.call @update(%w, %g) : (!w, !w) -> !w mpmd.return %0 : !w } : (!w3, !w3) -> !w3
  return %n0, %n1, %n2, %n3 : !w0, !w1, !w2, !w3
}

func.func private @update(%w: !w, %g: !w) -> !w {
  %rate = stablehlo.constant dense<9.765625e-04> : !w
  %0 = stablehlo.multiply %g, %rate : !w
  %1 = stablehlo.subtract %w, %0 : !w
  return %1 : !w
}
