// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: mgpu-opt --split-input-file --verify-diagnostics %s

// expected-error @below {{a topology has one mesh "a", and its name is not empty [topology_c1]}}
func.func private @f() attributes {topology = #mpmd.topology<<"a" : <["x"=2]>>, <"a" : <["x"=2]>>>}

// -----
// expected-error @below {{expected '<'}}
func.func private @f(!mpmd.mesh_tensor<"a", tensor<4xf32>, sharding="x">)

// -----
// expected-error @below {{expected 'memory_kind'}}
func.func private @f(!mpmd.mesh_tensor<"a", tensor<4xf32>, >)

// -----
// expected-error @below {{expected '>'}}
func.func private @f(!mpmd.mesh_tensor<"a", tensor<4xf32> memory_kind="device">)

// -----
// expected-error @below {{invalid kind of type specified}}
func.func private @f(!mpmd.mesh_tensor<"a", tensor<*xf32>>)

// -----
func.func @f(%a: tensor<4xf32>) {
  // expected-error @below {{mpmd.use_set must be a #mpmd.meshes_with_origins [meshes_with_origins_c1]}}
  %0 = stablehlo.negate %a {mpmd.use_set = ["a"]} : tensor<4xf32>
  return
}

// -----
func.func @f(%a: tensor<4xf32>) attributes {topology = #mpmd.topology<<"a" : <["x"=2]>>>} {
  // expected-error @below {{has a tensor on mesh "b", which is not in the function's topology [mesh_tensor_c1]}}
  %0 = mpmd.assign %a : (tensor<4xf32>) -> !mpmd.mesh_tensor<"b", tensor<4xf32>>
  return
}

// -----
func.func @f(%a: tensor<4xf32>) {
  // expected-error @below {{has a tensor on mesh "a", which is not in the function's topology [mesh_tensor_c1]}}
  %0 = mpmd.assign %a : (tensor<4xf32>) -> !mpmd.mesh_tensor<"a", tensor<4xf32>>
  return
}

// -----
!t = !mpmd.mesh_tensor<"a", tensor<4xf32>, sharding=<@mesh, [{"y"}]>>
func.func @f(%a: !t) attributes {topology = #mpmd.topology<<"a" : <["x"=2]>>>} {
  // expected-error @below {{has a tensor on mesh "a": the mesh has no axis "y" [mesh_tensor_c2]}}
  %0 = mpmd.transfer %a : (!t) -> !mpmd.mesh_tensor<"a", tensor<4xf32>>
  return
}

// -----
!t = !mpmd.mesh_tensor<"a", tensor<4xf32>, sharding=<@mesh, [{"x"}, {}]>>
func.func @f(%a: !t) attributes {topology = #mpmd.topology<<"a" : <["x"=2]>>>} {
  // expected-error @below {{the sharding has 2 dimensions, and '!mpmd.mesh_tensor<"a", tensor<4xf32>, sharding=<@mesh, [{"x"}, {}]>>' has 1 [mesh_tensor_c2]}}
  %0 = mpmd.transfer %a : (!t) -> !mpmd.mesh_tensor<"a", tensor<4xf32>>
  return
}

// -----
!t = !mpmd.mesh_tensor<"a", tensor<4x4xf32>, sharding=<@mesh, [{"x"}, {"x"}]>>
func.func @f(%a: !t) attributes {topology = #mpmd.topology<<"a" : <["x"=2]>>>} {
  // expected-error @below {{has a tensor on mesh "a": axis "x" is used twice [mesh_tensor_c2]}}
  %0 = mpmd.transfer %a : (!t) -> !mpmd.mesh_tensor<"a", tensor<4x4xf32>>
  return
}

// -----
!t = !mpmd.mesh_tensor<"a", tensor<2x6xf32>, sharding=<@mesh, [{}, {"x"}]>>
func.func @f(%a: !t) attributes {topology = #mpmd.topology<<"a" : <["x"=4]>>>} {
  // expected-error @below {{cannot cut dimension 1 of '!mpmd.mesh_tensor<"a", tensor<2x6xf32>, sharding=<@mesh, [{}, {"x"}]>>' into parts of the same size [mesh_tensor_c3]}}
  %0 = mpmd.transfer %a : (!t) -> !mpmd.mesh_tensor<"a", tensor<2x6xf32>>
  return
}

// -----
func.func @f(%a: tensor<4xf32>) attributes {topology = #mpmd.topology<<"a" : <["x"=2]>>>} {
  // expected-error @below {{must give 'tensor<4xf32>' on a mesh, all of it on each device, not '!mpmd.mesh_tensor<"a", tensor<8xf32>>' [assign_c1]}}
  %0 = mpmd.assign %a : (tensor<4xf32>) -> !mpmd.mesh_tensor<"a", tensor<8xf32>>
  return
}

// -----
func.func @f(%a: tensor<4xf32>) attributes {topology = #mpmd.topology<<"a" : <["x"=2]>>>} {
  // expected-error @below {{all of it on each device, not '!mpmd.mesh_tensor<"a", tensor<4xf32>, sharding=<@mesh, [{"x"}]>>' [assign_c1]}}
  %0 = mpmd.assign %a : (tensor<4xf32>) -> !mpmd.mesh_tensor<"a", tensor<4xf32>, sharding=<@mesh, [{"x"}]>>
  return
}

// -----
!t = !mpmd.mesh_tensor<"a", tensor<4xf32>, sharding=<@mesh, [{"x"}]>>
func.func @f(%a: !t) attributes {topology = #mpmd.topology<<"a" : <["x"=2]>>>} {
  // expected-error @below {{must take 'tensor<4xf32>' on a mesh, all of it on each device, not '!mpmd.mesh_tensor<"a", tensor<4xf32>, sharding=<@mesh, [{"x"}]>>' [unassign_c1]}}
  %0 = mpmd.unassign %a : (!t) -> tensor<4xf32>
  return
}

// -----
!t = !mpmd.mesh_tensor<"a", tensor<4xf32>, sharding=<@mesh, [{}], unreduced={"x"}>>
func.func @f(%a: !t) attributes {topology = #mpmd.topology<<"a" : <["x"=2]>>>} {
  // expected-error @below {{[unassign_c1]}}
  %0 = mpmd.unassign %a : (!t) -> tensor<4xf32>
  return
}

// -----
!t = !mpmd.mesh_tensor<"a", tensor<4xf32>>
func.func @f(%a: !t) attributes {topology = #mpmd.topology<<"a" : <["x"=2]>>>} {
  // expected-error @below {{must give 'tensor<4xf32>', which it takes, not 'tensor<4xf64>' [transfer_c1]}}
  %0 = mpmd.transfer %a : (!t) -> !mpmd.mesh_tensor<"a", tensor<4xf64>>
  return
}

// -----
!t = !mpmd.mesh_tensor<"a", tensor<4xf32>>
func.func @f(%a: !t) attributes {topology = #mpmd.topology<<"a" : <["x"=2]>>>} {
  // expected-error @below {{knows memory_kind "device" and "pinned_host", not "disk" [transfer_c2]}}
  %0 = mpmd.transfer %a : (!t) -> !mpmd.mesh_tensor<"a", tensor<4xf32>, memory_kind="disk">
  return
}

// -----
!t = !mpmd.mesh_tensor<"a", tensor<4xf32>>
func.func @f(%a: !t) attributes {topology = #mpmd.topology<<"a" : <["x"=2]>>>} {
  // expected-error @below {{must say memory_kind in its types, and not as an attribute [transfer_c3]}}
  %0 = mpmd.transfer {memory_kind = "pinned_host"} %a : (!t) -> !t
  return
}

// -----
!t = !mpmd.mesh_tensor<"a", tensor<4xf32>>
func.func @f(%a: !t) attributes {topology = #mpmd.topology<<"a" : <["x"=2]>>>} {
  mpmd.for (%a) {iterations = 1 : ui32} (%x: !t, %index: tensor<ui32>) {
    // expected-error @below {{'mpmd.transfer' op expects parent op 'func.func'}}
    %0 = mpmd.transfer %x : (!t) -> !t
    mpmd.return %0 : !t
  } : !t
  return
}

// -----
func.func @f(%a: tensor<4xf32>) {
  // expected-error @below {{with none must have one operand, not 2 [reduce_c1]}}
  %0 = mpmd.reduce<none> %a, %a : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----
func.func @f(%a: tensor<4xf32>) {
  // expected-error @below {{op requires the same type for all operands and results}}
  %0 = mpmd.reduce<add> %a, %a : (tensor<4xf32>, tensor<4xf32>) -> tensor<5xf32>
  return
}

// -----
func.func @f(%a: tensor<4xf32>) {
  // expected-error @+2 {{expected ::mgpu::mpmd::ReductionType to be one of: none, add, max, min, mul, or, and}}
  // expected-error @below {{failed to parse Mpmd_ReductionAttr parameter 'reduction_type'}}
  %0 = mpmd.reduce<xor> %a : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----
func.func @f(%a: tensor<4xf32>) {
  // expected-error @below {{must have a body that takes values of the operands' types [named_computation_c1]}}
  %0 = mpmd.named_computation<"f"> (%a) (%x: tensor<5xf32>) {
    %1 = stablehlo.constant dense<1.0> : tensor<4xf32>
    mpmd.return %1 : tensor<4xf32>
  } : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----
func.func @f(%a: tensor<4xf32>) {
  // expected-error @below {{must have a body that returns values of the results' types [named_computation_c2]}}
  %0 = mpmd.named_computation<"f"> (%a) (%x: tensor<4xf32>) {
    mpmd.return %x, %x : tensor<4xf32>, tensor<4xf32>
  } : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----
func.func @f(%a: tensor<4xf32>) {
  // expected-note @below {{required by region isolation constraints}}
  mpmd.named_computation<"f"> () () {
    // expected-error @below {{using value defined outside the region}}
    %1 = stablehlo.negate %a : tensor<4xf32>
    mpmd.return
  } : () -> ()
  return
}

// -----
func.func @f(%a: tensor<4xf32>) {
  // expected-error @below {{expects regions to end with 'mpmd.return'}}
  // expected-note @below {{in custom textual format, the absence of terminator implies 'mpmd.return'}}
  "mpmd.named_computation"() ({
    sdy.return
  }) {origin = #mpmd.user_origin<"f">} : () -> ()
  return
}

// -----
func.func @f(%a: i32) {
  // expected-error @below {{must be variadic of tensor or token, but got 'i32'}}
  %0 = mpmd.named_computation<"f"> (%a) (%x: i32) {
    mpmd.return %x : i32
  } : (i32) -> i32
  return
}

// -----
func.func @f() attributes {topology = #mpmd.topology<<"a" : <["x"=2]>>>} {
  // expected-error @below {{is on mesh "b", which is not in the function's topology [fragment_c1]}}
  mpmd.fragment<mesh="b", origin=[]> () () {
  } : () -> ()
  return
}

// -----
!t = !mpmd.mesh_tensor<"b", tensor<4xf32>>
func.func @f(%a: !t) attributes {topology = #mpmd.topology<<"a" : <["x"=2]>>, <"b" : <["x"=2]>>>} {
  // expected-error @below {{is on mesh "a", and '!mpmd.mesh_tensor<"b", tensor<4xf32>>' is not [fragment_c2]}}
  mpmd.fragment<mesh="a", origin=[]> (%a) (%x: tensor<4xf32>) {
  } : (!t) -> ()
  return
}

// -----
!t = !mpmd.mesh_tensor<"b", tensor<4xf32>>
func.func @f() attributes {topology = #mpmd.topology<<"a" : <["x"=2]>>, <"b" : <["x"=2]>>>} {
  // expected-error @below {{is on mesh "a", and '!mpmd.mesh_tensor<"b", tensor<4xf32>>' is not [fragment_c2]}}
  %0 = mpmd.fragment<mesh="a", origin=[]> () () {
    %1 = stablehlo.constant dense<1.0> : tensor<4xf32>
    mpmd.return %1 : tensor<4xf32>
  } : () -> !t
  return
}

// -----
!t = !mpmd.mesh_tensor<"a", tensor<4xf32>, sharding=<@mesh, [{"x"}]>>
func.func @f(%a: !t) attributes {topology = #mpmd.topology<<"a" : <["x"=2]>>>} {
  // expected-error @below {{must have a body that takes values of the operands' global types [fragment_c3]}}
  mpmd.fragment<mesh="a", origin=[]> (%a) (%x: tensor<2xf32>) {
  } : (!t) -> ()
  return
}

// -----
!t = !mpmd.mesh_tensor<"a", tensor<4xf32>, sharding=<@mesh, [{"x"}]>>
func.func @f() attributes {topology = #mpmd.topology<<"a" : <["x"=2]>>>} {
  // expected-error @below {{must have a body that returns values of the results' global types [fragment_c4]}}
  %0 = mpmd.fragment<mesh="a", origin=[]> () () {
    %1 = stablehlo.constant dense<1.0> : tensor<2xf32>
    mpmd.return %1 : tensor<2xf32>
  } : () -> !t
  return
}

// -----
!t = !mpmd.mesh_tensor<"a", tensor<4xf32>>
func.func @f(%a: !t) attributes {topology = #mpmd.topology<<"a" : <["x"=2]>>>} {
  // expected-error @below {{must have 1 in_shardings, not 2 [fragment_c5]}}
  mpmd.fragment<mesh="a", origin=[], in_shardings=[<@mesh, [{}]>, <@mesh, [{}]>]> (%a) (%x: tensor<4xf32>) {
  } : (!t) -> ()
  return
}

// -----
!t = !mpmd.mesh_tensor<"a", tensor<4xf32>>
func.func @f(%a: !t) attributes {topology = #mpmd.topology<<"a" : <["x"=2]>>>} {
  // expected-error @below {{has out_shardings that do not suit '!mpmd.mesh_tensor<"a", tensor<4xf32>>': the mesh has no axis "y" [fragment_c6]}}
  %0 = mpmd.fragment<mesh="a", origin=[], out_shardings=[<@mesh, [{"y"}]>]> (%a) (%x: tensor<4xf32>) {
    mpmd.return %x : tensor<4xf32>
  } : (!t) -> !t
  return
}

// -----
!t = !mpmd.mesh_tensor<"a", tensor<3xf32>>
func.func @f(%a: !t) attributes {topology = #mpmd.topology<<"a" : <["x"=2]>>>} {
  // expected-error @below {{a dimension has no parts of the same size [fragment_c6]}}
  mpmd.fragment<mesh="a", origin=[], in_shardings=[<@mesh, [{"x"}]>]> (%a) (%x: tensor<3xf32>) {
  } : (!t) -> ()
  return
}

// -----
func.func @f() attributes {topology = #mpmd.topology<<"a" : <["x"=2]>>>} {
  // expected-error @below {{has a stage, so it must have an origin [fragment_c7]}}
  mpmd.fragment<mesh="a", origin=[], stage=1> () () {
  } : () -> ()
  return
}

// -----
func.func @f() attributes {topology = #mpmd.topology<<"a" : <["x"=2]>>>} {
  mpmd.fragment<mesh="a", origin=[]> () () {
    // expected-error @below {{'mpmd.fragment' op expects parent op to be one of 'func.func, mpmd.for'}}
    mpmd.fragment<mesh="a", origin=[]> () () {
    } : () -> ()
  } : () -> ()
  return
}

// -----
func.func @f() attributes {topology = #mpmd.topology<<"a" : <["x"=2]>>>} {
  // expected-error @below {{calls @g, which is no function [fragment_call_c1]}}
  mpmd.fragment_call<mesh="a", origin=[]> @g() : () -> ()
  return
}

// -----
!t = !mpmd.mesh_tensor<"a", tensor<4xf32>, sharding=<@mesh, [{"x"}]>>
func.func @f(%a: !t) attributes {topology = #mpmd.topology<<"a" : <["x"=2]>>>} {
  // expected-error @below {{must call a function of the global types of its operands and results, not '(tensor<2xf32>) -> ()' [fragment_call_c2]}}
  mpmd.fragment_call<mesh="a", origin=[]> @g(%a) : (!t) -> ()
  return
}
func.func private @g(tensor<2xf32>) attributes {mesh_shape = #sdy.mesh<["x"=2]>}

// -----
func.func @f() attributes {topology = #mpmd.topology<<"a" : <["x"=2]>>>} {
  // expected-error @below {{is on mesh "b", which is not in the function's topology [fragment_call_c3]}}
  mpmd.fragment_call<mesh="b", origin=[]> @g() : () -> ()
  return
}
func.func private @g() attributes {mesh_shape = #sdy.mesh<["x"=2]>}

// -----
!t = !mpmd.mesh_tensor<"b", tensor<4xf32>>
func.func @f(%a: !t) attributes {topology = #mpmd.topology<<"a" : <["x"=2]>>, <"b" : <["x"=2]>>>} {
  // expected-error @below {{is on mesh "a", and '!mpmd.mesh_tensor<"b", tensor<4xf32>>' is not [fragment_call_c4]}}
  mpmd.fragment_call<mesh="a", origin=[]> @g(%a) : (!t) -> ()
  return
}
func.func private @g(tensor<4xf32>) attributes {mesh_shape = #sdy.mesh<["x"=2]>}

// -----
func.func @f() attributes {topology = #mpmd.topology<<"a" : <["x"=2]>>>} {
  // expected-error @below {{is on mesh "a", and @g does not have that mesh as mesh_shape [fragment_call_c5]}}
  mpmd.fragment_call<mesh="a", origin=[]> @g() : () -> ()
  return
}
func.func private @g() attributes {mesh_shape = #sdy.mesh<["x"=4]>}

// -----
func.func @f() {
  // expected-error @below {{calls @g, which is no function [call_c1]}}
  mpmd.call @g() : () -> ()
  return
}

// -----
func.func @f(%a: tensor<4xf32>) {
  // expected-error @below {{must call a function of the types of its operands and results, not '(tensor<4xf32>, tensor<4xf32>) -> ()' [call_c2]}}
  mpmd.call @g(%a) : (tensor<4xf32>) -> ()
  return
}
func.func private @g(tensor<4xf32>, tensor<4xf32>)

// -----
func.func @f() {
  // expected-error @below {{must have a call_counter of type ui32, not 0 : i32 [call_c3]}}
  mpmd.call @g() {call_counter = 0 : i32} : () -> ()
  return
}
func.func private @g()

// -----
func.func @f() {
  mpmd.named_computation<"f"> () () {
    // expected-error @below {{must stand in a function or in mpmd.for, not in mpmd.named_computation [call_c4]}}
    mpmd.call @g() : () -> ()
  } : () -> ()
  return
}
func.func private @g()

// -----
func.func private @f() attributes {topology = #mpmd.topology<<"a" : <["x"=2]>>>} {
  // expected-error @below {{stands in @f, but only the entry function of a program with a topology calls [call_c5]}}
  mpmd.call @g() : () -> ()
  return
}
func.func private @g()

// -----
func.func @f() attributes {topology = #mpmd.topology<<"a" : <["x"=2]>>>} {
  // expected-error @below {{must call a private function, as @g has a topology [call_c6]}}
  mpmd.call @g() : () -> ()
  return
}
func.func @g() attributes {topology = #mpmd.topology<<"a" : <["x"=2]>>>} {
  return
}

// -----
func.func @f(%a: tensor<4xf32>) {
  // expected-error @below {{must give values of the operands' types [for_c1]}}
  %0 = "mpmd.for"(%a) ({
  ^bb0(%x: tensor<4xf32>, %index: tensor<ui32>):
    mpmd.return %x : tensor<4xf32>
  }) {iterations = 1 : ui32} : (tensor<4xf32>) -> tensor<5xf32>
  return
}

// -----
func.func @f(%a: tensor<4xf32>) {
  // expected-error @below {{must have a body that takes values of the operands' types, and a 32-bit index [for_c2]}}
  mpmd.for (%a) {iterations = 1 : ui32} (%x: tensor<4xf32>) {
    mpmd.return %x : tensor<4xf32>
  } : tensor<4xf32>
  return
}

// -----
func.func @f(%a: tensor<4xf32>) {
  // expected-error @below {{and a 32-bit index [for_c2]}}
  mpmd.for (%a) {iterations = 1 : ui32} (%x: tensor<4xf32>, %index: tensor<1xui32>) {
    mpmd.return %x : tensor<4xf32>
  } : tensor<4xf32>
  return
}

// -----
func.func @f(%a: tensor<4xf32>) {
  // expected-error @below {{must have a body that returns values of the operands' types [for_c3]}}
  mpmd.for (%a) {iterations = 1 : ui32} (%x: tensor<4xf32>, %index: tensor<ui32>) {
  } : tensor<4xf32>
  return
}

// -----
func.func @f() {
  // expected-error @below {{runs 1 time at least, in rounds of unroll_factor, not 0 in rounds of 1 [for_c4]}}
  mpmd.for () {iterations = 0 : ui32} (%index: tensor<ui32>) {
  }
  return
}

// -----
func.func @f() {
  // expected-error @below {{not 3 in rounds of 2 [for_c4]}}
  mpmd.for () {iterations = 3 : ui32, unroll_factor = 2 : ui32} (%index: tensor<ui32>) {
  }
  return
}

// -----
func.func @f() {
  // expected-error @below {{not 3 in rounds of 0 [for_c4]}}
  mpmd.for () {iterations = 3 : ui32, unroll_factor = 0 : ui32} (%index: tensor<ui32>) {
  }
  return
}

// -----
func.func @f() {
  // expected-error @below {{'mpmd.for' op requires attribute 'iterations'}}
  mpmd.for () (%index: tensor<ui32>) {
  }
  return
}

// -----
!t = !mpmd.mesh_tensor<"a", tensor<4xf32>>
func.func @f(%a: !t, %b: tensor<4xf32>) {
  // expected-error @below {{must have operands of one kind, not '!mpmd.mesh_tensor<"a", tensor<4xf32>>' and 'tensor<4xf32>' [for_c5]}}
  mpmd.for (%a, %b) {iterations = 1 : ui32} (%x: !t, %y: tensor<4xf32>, %index: tensor<ui32>) {
    mpmd.return %x, %y : !t, tensor<4xf32>
  } : !t, tensor<4xf32>
  return
}
