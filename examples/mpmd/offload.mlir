// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The step of training.mlir for one batch, with momentum. The optimizer's state
// (s1, s2) stays in the hosts' memory: it comes to the devices for the update
// alone, and the next state goes back, beside other work.
#topology = #mpmd.topology<<"m1" : <["d"=2]>>, <"m2" : <["d"=2]>>>
!x = !mpmd.mesh_tensor<"m1", tensor<8x16xf32>, sharding=<@m1, [{"d"}, {}]>>
!h1 = !mpmd.mesh_tensor<"m1", tensor<8x24xf32>, sharding=<@m1, [{"d"}, {}]>>
!w1 = !mpmd.mesh_tensor<"m1", tensor<16x24xf32>, sharding=<@m1, [{"d"}, {}]>>
!s1 = !mpmd.mesh_tensor<"m1", tensor<16x24xf32>, sharding=<@m1, [{"d"}, {}]>, memory_kind="pinned_host">
!h2 = !mpmd.mesh_tensor<"m2", tensor<8x24xf32>, sharding=<@m2, [{"d"}, {}]>>
!t = !mpmd.mesh_tensor<"m2", tensor<8x4xf32>, sharding=<@m2, [{"d"}, {}]>>
!w2 = !mpmd.mesh_tensor<"m2", tensor<24x4xf32>, sharding=<@m2, [{"d"}, {}]>>
!s2 = !mpmd.mesh_tensor<"m2", tensor<24x4xf32>, sharding=<@m2, [{"d"}, {}]>, memory_kind="pinned_host">

func.func @main(%x: !x, %t: !t, %w1: !w1 {tf.aliasing_output = 0 : i32}, %w2: !w2 {tf.aliasing_output = 1 : i32},
                %s1: !s1 {tf.aliasing_output = 2 : i32}, %s2: !s2 {tf.aliasing_output = 3 : i32})
    -> (!w1, !w2, !s1, !s2) attributes {topology = #topology} {
  %h = mpmd.fragment<mesh="m1", origin=["front"]> (%x, %w1)
      (%a: tensor<8x16xf32>, %w: tensor<16x24xf32>) {
    %zero = stablehlo.constant dense<0.0> : tensor<8x24xf32>
    %0 = stablehlo.dot %a, %w : (tensor<8x16xf32>, tensor<16x24xf32>) -> tensor<8x24xf32>
    %1 = stablehlo.maximum %0, %zero : tensor<8x24xf32>
    mpmd.return %1 : tensor<8x24xf32>
  } : (!x, !w1) -> !h1
  %there = mpmd.transfer %h : (!h1) -> !h2
  %back:2 = mpmd.fragment<mesh="m2", origin=["back"]> (%there, %t, %w2)
      (%a: tensor<8x24xf32>, %b: tensor<8x4xf32>, %w: tensor<24x4xf32>) {
    %y = stablehlo.dot %a, %w : (tensor<8x24xf32>, tensor<24x4xf32>) -> tensor<8x4xf32>
    %dy = stablehlo.subtract %y, %b : tensor<8x4xf32>
    %dh = stablehlo.dot_general %dy, %w, contracting_dims = [1] x [1]
        : (tensor<8x4xf32>, tensor<24x4xf32>) -> tensor<8x24xf32>
    %dw = stablehlo.dot_general %a, %dy, contracting_dims = [0] x [0]
        : (tensor<8x24xf32>, tensor<8x4xf32>) -> tensor<24x4xf32>
    mpmd.return %dh, %dw : tensor<8x24xf32>, tensor<24x4xf32>
  } : (!h2, !t, !w2) -> (!h2, !w2)
  %again = mpmd.transfer %back#0 : (!h2) -> !h1
  %g1 = mpmd.fragment<mesh="m1", origin=["front"(1)]> (%x, %h, %again)
      (%a: tensor<8x16xf32>, %b: tensor<8x24xf32>, %d: tensor<8x24xf32>) {
    %zero = stablehlo.constant dense<0.0> : tensor<8x24xf32>
    %on = stablehlo.compare GT, %b, %zero : (tensor<8x24xf32>, tensor<8x24xf32>) -> tensor<8x24xi1>
    %da = stablehlo.select %on, %d, %zero : tensor<8x24xi1>, tensor<8x24xf32>
    %dw = stablehlo.dot_general %a, %da, contracting_dims = [0] x [0]
        : (tensor<8x16xf32>, tensor<8x24xf32>) -> tensor<16x24xf32>
    mpmd.return %dw : tensor<16x24xf32>
  } : (!x, !h1, !h1) -> !w1
  %state1 = mpmd.transfer %s1 : (!s1) -> !w1
  %state2 = mpmd.transfer %s2 : (!s2) -> !w2
  %n1:2 = mpmd.fragment<mesh="m1", origin=["update"]> (%w1, %g1, %state1)
      (%w: tensor<16x24xf32>, %g: tensor<16x24xf32>, %s: tensor<16x24xf32>) {
    %half = stablehlo.constant dense<0.5> : tensor<16x24xf32>
    %rate = stablehlo.constant dense<9.765625e-04> : tensor<16x24xf32>
    %0 = stablehlo.multiply %s, %half : tensor<16x24xf32>
    %next = stablehlo.add %0, %g : tensor<16x24xf32>
    %1 = stablehlo.multiply %next, %rate : tensor<16x24xf32>
    %2 = stablehlo.subtract %w, %1 : tensor<16x24xf32>
    mpmd.return %2, %next : tensor<16x24xf32>, tensor<16x24xf32>
  } : (!w1, !w1, !w1) -> (!w1, !w1)
  %n2:2 = mpmd.fragment<mesh="m2", origin=["update"]> (%w2, %back#1, %state2)
      (%w: tensor<24x4xf32>, %g: tensor<24x4xf32>, %s: tensor<24x4xf32>) {
    %half = stablehlo.constant dense<0.5> : tensor<24x4xf32>
    %rate = stablehlo.constant dense<9.765625e-04> : tensor<24x4xf32>
    %0 = stablehlo.multiply %s, %half : tensor<24x4xf32>
    %next = stablehlo.add %0, %g : tensor<24x4xf32>
    %1 = stablehlo.multiply %next, %rate : tensor<24x4xf32>
    %2 = stablehlo.subtract %w, %1 : tensor<24x4xf32>
    mpmd.return %2, %next : tensor<24x4xf32>, tensor<24x4xf32>
  } : (!w2, !w2, !w2) -> (!w2, !w2)
  %next1 = mpmd.transfer %n1#1 : (!w1) -> !s1
  %next2 = mpmd.transfer %n2#1 : (!w2) -> !s2
  return %n1#0, %n2#0, %next1, %next2 : !w1, !w2, !s1, !s2
}
