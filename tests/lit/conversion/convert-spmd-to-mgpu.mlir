// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RUN: mgpu-opt %s --convert-spmd-to-mgpu --split-input-file | FileCheck %s

mgpu.device_config @config #mgpu.device_config<numDevices = 2>
memref.global "private" constant @table : memref<4xf32> = dense<[1.0, 2.0, 3.0, 4.0]>

// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[X:.*]]: memref<8xf32>)
func.func @main(%x: memref<8xf32>) -> memref<8xf32> {
  // CHECK-DAG: %[[HOST:.*]] = mgpu.get_device %c-1
  // CHECK-DAG: %[[D0:.*]] = mgpu.get_device %c0
  // CHECK-DAG: %[[D1:.*]] = mgpu.get_device %c1
  // Constants and communicators come first.
  // CHECK: %[[T0:.*]] = mgpu.alloc %[[D0]]
  // CHECK: mgpu.memcpy %[[T0]]
  // CHECK: %[[T1:.*]] = mgpu.alloc %[[D1]]
  // CHECK: mgpu.memcpy %[[T1]]
  // CHECK: %[[COMM:.*]] = mgpu.create_communicator %[[D0]], %[[D1]]

  // All of device 0, then all of device 1.
  // CHECK: %[[A0:.*]] = mgpu.alloc %[[D0]]
  // CHECK: %[[PART0:.*]] = memref.subview %[[X]][0] [4] [1]
  // CHECK: mgpu.memcpy %[[A0]], %[[PART0]], %[[D0]], %[[HOST]]
  // CHECK: linalg.exp ins(%[[T0]] : {{.*}}) outs(%[[A0]]
  // CHECK: %[[A1:.*]] = mgpu.alloc %[[D1]]
  // CHECK: %[[PART1:.*]] = memref.subview %[[X]][4] [4] [1]
  // CHECK: mgpu.memcpy %[[A1]], %[[PART1]], %[[D1]], %[[HOST]]
  // CHECK: linalg.exp ins(%[[T1]] : {{.*}}) outs(%[[A1]]
  %a = memref.alloc() : memref<4xf32>
  spmd.distribute #spmd.layout<mesh = [2], split = [[0]]> ins(%x : memref<8xf32>) outs(%a : memref<4xf32>)
  %t = memref.get_global @table : memref<4xf32>
  linalg.exp ins(%t : memref<4xf32>) outs(%a : memref<4xf32>)

  // A loop that both take alike stays one.
  // CHECK: scf.for
  // CHECK-NEXT: mgpu.all_reduce %[[A0]], %[[A0]], %[[COMM]], sum
  // CHECK-NEXT: mgpu.all_reduce %[[A1]], %[[A1]], %[[COMM]], sum
  // CHECK-NEXT: }
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  scf.for %i = %c0 to %c9 step %c1 {
    spmd.all_reduce sum ins(%a : memref<4xf32>) outs(%a : memref<4xf32>)
  }

  // What depends on the device is there once for each.
  // CHECK: memref.subview %[[A0]][%{{.*}}] [2] [1]
  // CHECK: %[[OUT:.*]] = memref.alloc()
  // CHECK: %[[OUT0:.*]] = memref.subview %[[OUT]][0] [4] [1]
  // CHECK: mgpu.memcpy %[[OUT0]], %[[A0]], %[[HOST]], %[[D0]]
  // CHECK: memref.subview %[[A1]][%{{.*}}] [2] [1]
  // CHECK: %[[OUT1:.*]] = memref.subview %[[OUT]][4] [4] [1]
  // CHECK: mgpu.memcpy %[[OUT1]], %[[A1]], %[[HOST]], %[[D1]]
  %d = spmd.device_index : index
  %part = memref.subview %a[%d] [2] [1] : memref<4xf32> to memref<2xf32, strided<[1], offset: ?>>
  linalg.exp ins(%part : memref<2xf32, strided<[1], offset: ?>>) outs(%part : memref<2xf32, strided<[1], offset: ?>>)

  %out = memref.alloc() : memref<8xf32>
  spmd.collect #spmd.layout<mesh = [2], split = [[0]]> ins(%a : memref<4xf32>) outs(%out : memref<8xf32>)
  // CHECK: return %[[OUT]]
  return %out : memref<8xf32>
}

// -----

// Groups are communicators; a broadcast sends from where it receives; replicas
// are collected once; a store of host code fills one element.
mgpu.device_config @config #mgpu.device_config<numDevices = 4>

// CHECK-LABEL: func.func @main
func.func @main(%v: f32) -> memref<f32> {
  // CHECK-DAG: %[[ODD:.*]] = mgpu.create_communicator %dev1, %dev3
  // CHECK-DAG: %[[EVEN:.*]] = mgpu.create_communicator %dev0, %dev2
  // CHECK: %[[A:.*]] = mgpu.alloc %dev0
  // CHECK: linalg.fill ins(%{{.*}} : f32) outs(%[[A]] : memref<f32>)
  %a = memref.alloc() : memref<f32>
  %b = memref.alloc() : memref<f32>
  memref.store %v, %a[] : memref<f32>
  // CHECK: memref.copy
  // CHECK-NEXT: arith.constant 1
  // CHECK-NEXT: mgpu.broadcast %{{.*}}, %[[EVEN]]
  // CHECK: mgpu.broadcast %{{.*}}, %[[EVEN]]
  // CHECK: memref.copy
  // CHECK: mgpu.broadcast %{{.*}}, %[[ODD]]
  // CHECK: mgpu.broadcast %{{.*}}, %[[ODD]]
  spmd.broadcast ins(%a : memref<f32>) outs(%b : memref<f32>) root = 1 groups [[0, 2], [1, 3]]
  // CHECK-COUNT-4: mgpu.permute {{.*}} pairs = {{\[\[}}0, 1], [3, 2]]
  spmd.permute ins(%b : memref<f32>) outs(%a : memref<f32>) pairs [[0, 1], [3, 2]]
  // CHECK: memref.alloc() : memref<f32>
  // CHECK-COUNT-1: mgpu.memcpy
  // CHECK-NEXT: return
  %out = memref.alloc() : memref<f32>
  spmd.collect #spmd.layout<mesh = [4], split = []> ins(%a : memref<f32>) outs(%out : memref<f32>)
  return %out : memref<f32>
}

// -----

// The body of spmd.on is there for its devices alone, and what moves goes from
// those that have it to those that get it.
mgpu.device_config @config #mgpu.device_config<numDevices = 3>

// CHECK-LABEL: func.func @main
func.func @main() {
  // CHECK: %[[PAIR:.*]] = mgpu.create_communicator %dev1, %dev2 :
  // CHECK-NOT: mgpu.all_reduce %{{.*}} dev0
  %a = spmd.on 1 to 3 -> memref<4xf32> {
    // CHECK: %[[A1:.*]] = mgpu.alloc %dev1
    // CHECK: %[[A2:.*]] = mgpu.alloc %dev2
    %b = memref.alloc() : memref<4xf32>
    // CHECK: mgpu.all_reduce %[[A1]], %[[A1]], %[[PAIR]]
    // CHECK-NEXT: mgpu.all_reduce %[[A2]], %[[A2]], %[[PAIR]]
    spmd.all_reduce sum ins(%b : memref<4xf32>) outs(%b : memref<4xf32>)
    spmd.yield %b : memref<4xf32>
  }
  // CHECK: %[[C0:.*]] = mgpu.alloc %dev0
  %c = memref.alloc() : memref<8xf32>
  // CHECK: %[[LEFT:.*]] = memref.subview %[[C0]][0] [4] [1]
  // CHECK: mgpu.memcpy %[[LEFT]], %[[A1]], %dev0, %dev1
  // CHECK: %[[RIGHT:.*]] = memref.subview %[[C0]][4] [4] [1]
  // CHECK: mgpu.memcpy %[[RIGHT]], %[[A2]], %dev0, %dev2
  // CHECK-NOT: mgpu.memcpy
  spmd.move from <mesh = [2], first = 1, split = [[0]]> to <mesh = [1], first = 0, split = [[]]> full = [8]
      ins(%a : memref<4xf32>) outs(%c : memref<8xf32>)
  return
}

// -----

// The size of a part that a view splits is among what the view was made of, so
// that each device knows it.
mgpu.device_config @config #mgpu.device_config<numDevices = 2>

// CHECK-LABEL: func.func @main
func.func @main() {
  // CHECK-DAG: mgpu.alloc %dev0 : !mgpu.device -> memref<2x3xf32>
  // CHECK-DAG: mgpu.alloc %dev1 : !mgpu.device -> memref<2x4xf32>
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %device = spmd.device_index : index
  %columns = arith.addi %device, %c3 : index
  %a = memref.alloc(%columns) : memref<2x?xf32>
  %view = memref.expand_shape %a [[0, 1], [2]] output_shape [1, 2, %columns] : memref<2x?xf32> into memref<1x2x?xf32>
  %c2 = arith.constant 2 : index
  %size = memref.dim %view, %c2 : memref<1x2x?xf32>
  // CHECK-DAG: mgpu.alloc %dev0 : !mgpu.device -> memref<3xf32>
  // CHECK-DAG: mgpu.alloc %dev1 : !mgpu.device -> memref<4xf32>
  %b = memref.alloc(%size) : memref<?xf32>
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%b : memref<?xf32>)
  linalg.fill ins(%zero : f32) outs(%view : memref<1x2x?xf32>)
  return
}

// -----

// One device that stands for all: its code alone, and its calls of what all do.

mgpu.device_config @config #mgpu.device_config<numDevices = 4>

// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[X:.*]]: memref<8xf32>)
func.func @main(%x: memref<8xf32>) attributes {mgpu.mark = #mgpu.mark<one_device>} {
  // CHECK: %[[HOST:.*]] = mgpu.get_device %c-1
  // CHECK: %[[D0:.*]] = mgpu.get_device %c0
  // CHECK: %[[D1:.*]] = mgpu.get_device %c1
  // CHECK: mgpu.create_communicator %[[D0]], %[[D1]] {mgpu.mark = #mgpu.mark<one_device>}
  // CHECK-NOT: mgpu.create_communicator
  // CHECK: %[[A0:.*]] = mgpu.alloc %[[D0]]
  // CHECK-NOT: mgpu.alloc
  // CHECK: %[[PART:.*]] = memref.subview %[[X]][0] [2] [1]
  // CHECK: mgpu.memcpy %[[A0]], %[[PART]], %[[D0]], %[[HOST]]
  // CHECK: mgpu.all_reduce %[[A0]], %[[A0]]
  // CHECK-NOT: mgpu.all_reduce
  // CHECK: return
  %a = memref.alloc() : memref<2xf32>
  spmd.distribute #spmd.layout<mesh = [4], split = [[0]]> ins(%x : memref<8xf32>) outs(%a : memref<2xf32>)
  spmd.all_reduce sum ins(%a : memref<2xf32>) outs(%a : memref<2xf32>) groups [[0, 1], [2, 3]]
  return
}
