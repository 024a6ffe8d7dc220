// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Four microbatches on two meshes, as the program has them: one after the other.
// RUN: mgpu-opt %s --inline | FileCheck %s --check-prefixes=PLAIN
// RUN: mgpu-opt %s --inline --mpmd-schedule=schedule=auto | FileCheck %s --check-prefixes=PLAIN
// RUN: mgpu-opt %s --inline --mpmd-schedule=schedule=gpipe | grep 'func @main\|fragment<mesh="m1"' | FileCheck %s --check-prefixes=GPIPE
// RUN: mgpu-opt %s --inline --mpmd-schedule=schedule=1f1b | grep 'func @main\|fragment<mesh="m1"' | FileCheck %s --check-prefixes=FIRST
// RUN: mgpu-opt %s --inline --mpmd-schedule=schedule=1f1b | grep 'fragment<mesh="m2"' | FileCheck %s --check-prefixes=SECOND
// RUN: mgpu-opt %s --inline --mpmd-schedule=schedule=eager-1f1b | grep 'fragment<mesh="m1"' | FileCheck %s --check-prefixes=EAGER
// RUN: mgpu-opt %s --inline --mpmd-schedule=schedule=1f1b | FileCheck %s --check-prefixes=WHOLE

#topology = #mpmd.topology<<"m1" : <["x"=2]>>, <"m2" : <["x"=2]>>>
!m1 = !mpmd.mesh_tensor<"m1", tensor<4xf32>>
!m2 = !mpmd.mesh_tensor<"m2", tensor<4xf32>>

// PLAIN-LABEL: func.func @main
// PLAIN-NOT: in_order
// PLAIN: origin=["f"]> {{.*}}call_counter = 0
// PLAIN: origin=["g"]> {{.*}}call_counter = 0
// PLAIN: origin=["g"(1)]> {{.*}}call_counter = 0
// PLAIN: origin=["f"(1)]> {{.*}}call_counter = 0
// PLAIN: origin=["f"]> {{.*}}call_counter = 1

// GPIPE: func @main{{.*}}#mgpu.mark<in_order>
// GPIPE-NEXT: origin=["f"]> {{.*}}call_counter = 0
// GPIPE-NEXT: origin=["f"]> {{.*}}call_counter = 1
// GPIPE-NEXT: origin=["f"]> {{.*}}call_counter = 2
// GPIPE-NEXT: origin=["f"]> {{.*}}call_counter = 3
// GPIPE-NEXT: origin=["f"(1)]> {{.*}}call_counter = 0
// GPIPE-NEXT: origin=["f"(1)]> {{.*}}call_counter = 1
// GPIPE-NEXT: origin=["f"(1)]> {{.*}}call_counter = 2
// GPIPE-NEXT: origin=["f"(1)]> {{.*}}call_counter = 3
// GPIPE-NEXT: origin=["update"]>

// FIRST: func @main{{.*}}#mgpu.mark<in_order>
// FIRST-NEXT: origin=["f"]> {{.*}}call_counter = 0
// FIRST-NEXT: origin=["f"]> {{.*}}call_counter = 1
// FIRST-NEXT: origin=["f"(1)]> {{.*}}call_counter = 0
// FIRST-NEXT: origin=["f"]> {{.*}}call_counter = 2
// FIRST-NEXT: origin=["f"(1)]> {{.*}}call_counter = 1
// FIRST-NEXT: origin=["f"]> {{.*}}call_counter = 3
// FIRST-NEXT: origin=["f"(1)]> {{.*}}call_counter = 2
// FIRST-NEXT: origin=["f"(1)]> {{.*}}call_counter = 3
// FIRST-NEXT: origin=["update"]>

// SECOND: origin=["g"]> {{.*}}call_counter = 0
// SECOND-NEXT: origin=["g"(1)]> {{.*}}call_counter = 0
// SECOND-NEXT: origin=["g"]> {{.*}}call_counter = 1
// SECOND-NEXT: origin=["g"(1)]> {{.*}}call_counter = 1
// SECOND-NEXT: origin=["g"]> {{.*}}call_counter = 2
// SECOND-NEXT: origin=["g"(1)]> {{.*}}call_counter = 2
// SECOND-NEXT: origin=["g"]> {{.*}}call_counter = 3
// SECOND-NEXT: origin=["g"(1)]> {{.*}}call_counter = 3

// EAGER: origin=["f"]> {{.*}}call_counter = 0
// EAGER-NEXT: origin=["f"]> {{.*}}call_counter = 1
// EAGER-NEXT: origin=["f"]> {{.*}}call_counter = 2
// EAGER-NEXT: origin=["f"(1)]> {{.*}}call_counter = 0
// EAGER-NEXT: origin=["f"]> {{.*}}call_counter = 3
// EAGER-NEXT: origin=["f"(1)]> {{.*}}call_counter = 1

// The program's text has works in the order in which they could start.
// WHOLE: origin=["f"]> {{.*}}call_counter = 0
// WHOLE: mpmd.transfer
// WHOLE: origin=["g"]> {{.*}}call_counter = 0
// WHOLE: origin=["f"]> {{.*}}call_counter = 1
// WHOLE: origin=["g"(1)]> {{.*}}call_counter = 0
// WHOLE: origin=["f"(1)]> {{.*}}call_counter = 0
// WHOLE: origin=["g"]> {{.*}}call_counter = 1
func.func @main(%a: !m1, %b: !m1, %c: !m1, %d: !m1, %zero: !m1) -> !m1 attributes {topology = #topology} {
  %0 = mpmd.call @microbatch(%a, %zero) {call_counter = 0 : ui32} : (!m1, !m1) -> !m1
  %1 = mpmd.call @microbatch(%b, %0) {call_counter = 1 : ui32} : (!m1, !m1) -> !m1
  %2 = mpmd.call @microbatch(%c, %1) {call_counter = 2 : ui32} : (!m1, !m1) -> !m1
  %3 = mpmd.call @microbatch(%d, %2) {call_counter = 3 : ui32} : (!m1, !m1) -> !m1
  %4 = mpmd.fragment<mesh="m1", origin=["update"]> (%3) (%x: tensor<4xf32>) {
    mpmd.return %x : tensor<4xf32>
  } : (!m1) -> !m1
  return %4 : !m1
}

func.func private @microbatch(%a: !m1, %sum: !m1) -> !m1 attributes {topology = #topology} {
  %0 = mpmd.fragment<mesh="m1", origin=["f"]> (%a) (%x: tensor<4xf32>) {
    mpmd.return %x : tensor<4xf32>
  } : (!m1) -> !m1
  %1 = mpmd.transfer %0 : (!m1) -> !m2
  %2 = mpmd.fragment<mesh="m2", origin=["g"]> (%1) (%x: tensor<4xf32>) {
    mpmd.return %x : tensor<4xf32>
  } : (!m2) -> !m2
  %3 = mpmd.fragment<mesh="m2", origin=["g"(1)]> (%2) (%x: tensor<4xf32>) {
    mpmd.return %x : tensor<4xf32>
  } : (!m2) -> !m2
  %4 = mpmd.transfer %3 : (!m2) -> !m1
  %5 = mpmd.fragment<mesh="m1", origin=["f"(1)]> (%4, %0, %sum) (%x: tensor<4xf32>, %y: tensor<4xf32>, %z: tensor<4xf32>) {
    %6 = stablehlo.add %x, %z : tensor<4xf32>
    mpmd.return %6 : tensor<4xf32>
  } : (!m1, !m1, !m1) -> !m1
  return %5 : !m1
}
