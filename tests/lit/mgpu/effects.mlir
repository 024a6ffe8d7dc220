// RUN: mgpu-opt --canonicalize --cse --canonicalize --symbol-dce %s | FileCheck %s
// RUN: mgpu-opt --loop-invariant-code-motion %s | FileCheck %s --check-prefix=LICM
// RUN: mgpu-opt --inline %s | FileCheck %s --check-prefix=INLINE
// RUN: mgpu-opt --remove-dead-values %s | FileCheck %s --check-prefix=DEAD
// DEAD: mgpu.device_config

// Nothing with a side effect is deleted, merged or moved, though few of these
// operations have a result and many occur twice.

// CHECK: mgpu.device_config
mgpu.device_config @config #mgpu.device_config<numDevices = 2>

// CHECK-LABEL: func.func @all
// CHECK-COUNT-2: mgpu.create_stream
// CHECK-COUNT-2: mgpu.create_communicator
// CHECK-COUNT-2: mgpu.memcpy
// CHECK-COUNT-2: mgpu.scatter
// CHECK-COUNT-2: mgpu.uneven_scatter
// CHECK-COUNT-2: mgpu.gather
// CHECK-COUNT-2: mgpu.replicate
// CHECK-COUNT-2: mgpu.all_reduce
// CHECK-COUNT-2: mgpu.all_gather
// CHECK-COUNT-2: mgpu.reduce_scatter
// CHECK-COUNT-2: mgpu.all_to_all
// CHECK-COUNT-2: mgpu.permute
// CHECK-COUNT-2: mgpu.broadcast
// CHECK-COUNT-2: mgpu.send
// CHECK-COUNT-2: mgpu.recv
// CHECK-COUNT-2: mgpu.launch
// CHECK-COUNT-2: mgpu.stream_wait
// CHECK-COUNT-2: mgpu.sync_stream
// CHECK-COUNT-2: mgpu.sync_device
// CHECK-COUNT-2: mgpu.destroy_stream
// CHECK: mgpu.free
// CHECK: mgpu.sharded_free
// CHECK-NEXT: return
func.func @all(%d: !mgpu.device, %s: !mgpu.stream, %t: !mgpu.stream, %c: !mgpu.communicator,
    %a: memref<8xf32>, %b: memref<8xf32>, %n: index) {
  %s0 = mgpu.create_stream %d : !mgpu.device -> !mgpu.stream
  %s1 = mgpu.create_stream %d : !mgpu.device -> !mgpu.stream
  %c0 = mgpu.create_communicator %d : !mgpu.device -> !mgpu.communicator
  %c1 = mgpu.create_communicator %d : !mgpu.device -> !mgpu.communicator
  mgpu.memcpy %a, %b, %d, %d : memref<8xf32>, memref<8xf32>, !mgpu.device, !mgpu.device
  mgpu.memcpy %a, %b, %d, %d : memref<8xf32>, memref<8xf32>, !mgpu.device, !mgpu.device
  mgpu.scatter %a, %d, [%b], [%d] axis = 0 : memref<8xf32>, !mgpu.device, [memref<8xf32>], [!mgpu.device]
  mgpu.scatter %a, %d, [%b], [%d] axis = 0 : memref<8xf32>, !mgpu.device, [memref<8xf32>], [!mgpu.device]
  mgpu.uneven_scatter %a, %d, [%b], [%d] sliceSizes = [8] axis = 0 : memref<8xf32>, !mgpu.device, [memref<8xf32>], [!mgpu.device]
  mgpu.uneven_scatter %a, %d, [%b], [%d] sliceSizes = [8] axis = 0 : memref<8xf32>, !mgpu.device, [memref<8xf32>], [!mgpu.device]
  mgpu.gather %a, %d, [%b], [%d] axis = 0 : memref<8xf32>, !mgpu.device, [memref<8xf32>], [!mgpu.device]
  mgpu.gather %a, %d, [%b], [%d] axis = 0 : memref<8xf32>, !mgpu.device, [memref<8xf32>], [!mgpu.device]
  mgpu.replicate %a, %d, [%d], [%b] : memref<8xf32>, !mgpu.device, [!mgpu.device], [memref<8xf32>]
  mgpu.replicate %a, %d, [%d], [%b] : memref<8xf32>, !mgpu.device, [!mgpu.device], [memref<8xf32>]
  mgpu.all_reduce %a, %b, %c, sum : memref<8xf32>, memref<8xf32>, !mgpu.communicator
  mgpu.all_reduce %a, %b, %c, sum : memref<8xf32>, memref<8xf32>, !mgpu.communicator
  mgpu.all_gather %a, %b, %c : memref<8xf32>, memref<8xf32>, !mgpu.communicator
  mgpu.all_gather %a, %b, %c : memref<8xf32>, memref<8xf32>, !mgpu.communicator
  mgpu.reduce_scatter %a, %b, %c, sum : memref<8xf32>, memref<8xf32>, !mgpu.communicator
  mgpu.reduce_scatter %a, %b, %c, sum : memref<8xf32>, memref<8xf32>, !mgpu.communicator
  mgpu.all_to_all %a, %b, %c splitAxis = 0 concatAxis = 0 : memref<8xf32>, memref<8xf32>, !mgpu.communicator
  mgpu.all_to_all %a, %b, %c splitAxis = 0 concatAxis = 0 : memref<8xf32>, memref<8xf32>, !mgpu.communicator
  mgpu.permute %a, %b, %c pairs = [] : memref<8xf32>, memref<8xf32>, !mgpu.communicator
  mgpu.permute %a, %b, %c pairs = [] : memref<8xf32>, memref<8xf32>, !mgpu.communicator
  mgpu.broadcast %a, %c, %n : memref<8xf32>, !mgpu.communicator
  mgpu.broadcast %a, %c, %n : memref<8xf32>, !mgpu.communicator
  mgpu.send %a, %c, %n : memref<8xf32>, !mgpu.communicator
  mgpu.send %a, %c, %n : memref<8xf32>, !mgpu.communicator
  mgpu.recv %a, %c, %n : memref<8xf32>, !mgpu.communicator
  mgpu.recv %a, %c, %n : memref<8xf32>, !mgpu.communicator
  mgpu.launch %d grid(%n) block(%n) {
  }
  mgpu.launch %d grid(%n) block(%n) {
  }
  mgpu.stream_wait %s, %t : !mgpu.stream, !mgpu.stream
  mgpu.stream_wait %s, %t : !mgpu.stream, !mgpu.stream
  mgpu.sync_stream %s : !mgpu.stream
  mgpu.sync_stream %s : !mgpu.stream
  mgpu.sync_device %d : !mgpu.device
  mgpu.sync_device %d : !mgpu.device
  mgpu.destroy_stream %s0 : !mgpu.stream
  mgpu.destroy_stream %s1 : !mgpu.stream
  mgpu.free %a, %d : memref<8xf32>, !mgpu.device
  mgpu.sharded_free [%b], [%d] : [memref<8xf32>], [!mgpu.device]
  return
}

// Handles of one device are one value; two buffers are two; an allocation that
// nobody uses may go, as with memref.alloc.
// CHECK-LABEL: func.func @pure
// CHECK: mgpu.get_device
// CHECK-NOT: mgpu.get_device
// CHECK-COUNT-2: mgpu.alloc
// CHECK-NOT: mgpu.alloc
// CHECK-COUNT-2: mgpu.sharded_alloc
// CHECK-NOT: mgpu.sharded_alloc
// CHECK: return
func.func @pure(%i: index) -> (memref<8xf32>, memref<8xf32>, memref<8xf32>, memref<8xf32>) {
  %d = mgpu.get_device %i : !mgpu.device
  %e = mgpu.get_device %i : !mgpu.device
  %a = mgpu.alloc %d : !mgpu.device -> memref<8xf32>
  %b = mgpu.alloc %e : !mgpu.device -> memref<8xf32>
  %unused = mgpu.alloc %e : !mgpu.device -> memref<8xf32>
  %s = mgpu.sharded_alloc %d logicalShape = [8] shardAxis = 0 shardKind = uniform : !mgpu.device -> memref<8xf32>
  %t = mgpu.sharded_alloc %d logicalShape = [8] shardAxis = 0 shardKind = uniform : !mgpu.device -> memref<8xf32>
  return %a, %b, %s, %t : memref<8xf32>, memref<8xf32>, memref<8xf32>, memref<8xf32>
}

// A load before a synchronization is not the load after it, nor across a copy
// into the buffer or a launch that writes it.
// CHECK-LABEL: func.func @loads
// CHECK-COUNT-4: memref.load
// CHECK: return
func.func @loads(%d: !mgpu.device, %s: !mgpu.stream, %a: memref<8xf32>, %b: memref<8xf32>, %n: index) -> (f32, f32, f32, f32) {
  %0 = memref.load %a[%n] : memref<8xf32>
  mgpu.sync_stream %s : !mgpu.stream
  %1 = memref.load %a[%n] : memref<8xf32>
  mgpu.memcpy %a, %b, %d, %d : memref<8xf32>, memref<8xf32>, !mgpu.device, !mgpu.device
  %2 = memref.load %a[%n] : memref<8xf32>
  mgpu.launch %d grid(%n) block(%n) {
    %v = arith.constant 1.0 : f32
    memref.store %v, %a[%n] : memref<8xf32>
  }
  %3 = memref.load %a[%n] : memref<8xf32>
  return %0, %1, %2, %3 : f32, f32, f32, f32
}

// What folds inside a kernel stays inside it.
// CHECK-LABEL: func.func @constants
// CHECK-NOT: arith.constant
// CHECK: mgpu.launch
// CHECK: %[[C:.*]] = arith.constant 5 : index
// CHECK: memref.load %{{.*}}[%[[C]]]
func.func @constants(%d: !mgpu.device, %a: memref<8xf32>, %n: index) {
  mgpu.launch %d grid(%n) block(%n) {
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %c5 = arith.addi %c2, %c3 : index
    %v = memref.load %a[%c5] : memref<8xf32>
    memref.store %v, %a[%n] : memref<8xf32>
  }
  return
}

// LICM-LABEL: func.func @loop
// LICM: mgpu.get_device
// LICM: scf.for
// LICM-NEXT: mgpu.create_stream
// LICM-NEXT: mgpu.memcpy
// LICM-NEXT: mgpu.sync_device
func.func @loop(%i: index, %a: memref<8xf32>, %b: memref<8xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %k = %c0 to %n step %c1 {
    %d = mgpu.get_device %i : !mgpu.device
    %s = mgpu.create_stream %d : !mgpu.device -> !mgpu.stream
    mgpu.memcpy %a, %b, %d, %d : memref<8xf32>, memref<8xf32>, !mgpu.device, !mgpu.device
    mgpu.sync_device %d : !mgpu.device
  }
  return
}

func.func @callee(%d: !mgpu.device, %a: memref<8xf32>, %n: index) {
  mgpu.launch %d grid(%n) block(%n) {
    %v = func.call @in_kernel(%a, %n) : (memref<8xf32>, index) -> f32
    memref.store %v, %a[%n] : memref<8xf32>
  }
  return
}

func.func private @in_kernel(%a: memref<8xf32>, %n: index) -> f32 {
  %v = memref.load %a[%n] : memref<8xf32>
  return %v : f32
}

// INLINE-LABEL: func.func @caller
// INLINE-NEXT: mgpu.launch
// INLINE-NEXT: memref.load
// INLINE-NEXT: memref.store
// INLINE-NEXT: }
// INLINE-NEXT: return
func.func @caller(%d: !mgpu.device, %a: memref<8xf32>, %n: index) {
  func.call @callee(%d, %a, %n) : (!mgpu.device, memref<8xf32>, index) -> ()
  return
}
