// RUN: mgpu-tune check %s | FileCheck %s --check-prefix=CHECK
// RUN: mgpu-tune plan %s --explain | FileCheck %s --check-prefix=PLAN
// RUN: mgpu-tune run %s --arg x=iota --repeat 2 --out x=%t.npy --trace %t.json
// RUN: %python -c "import sys,struct; b=open(sys.argv[1],'rb').read()[-256:]; print(*map(int,struct.unpack('<64f',b)))" %t.npy | FileCheck %s --check-prefix=OUT
// RUN: mgpu-tune run %s --arg x=iota --repeat 2 --out x=%t.2.npy --roll-from 0
// RUN: cmp %t.npy %t.2.npy
// RUN: FileCheck %s --check-prefix=TRACE < %t.json

// Each trip adds twice its number to the values of device 0 and sends them on to
// device 1: 20 trips are one graph, replayed 20 times, between a scatter and a
// gather that are not. The second replay starts from what the first gathered.
// CHECK: ok: 2 devices, 8 nodes
// CHECK: loop {{.*}}rolled-loop.mlir:{{[0-9]+}}:{{[0-9]+}}: rolled, 20 trips
// PLAN: of its 20 trips the steps show one
// OUT: 760 761 762 {{.*}} 791 792 793 {{.*}} 823
// TRACE: send_recv

mgpu.device_config @config #mgpu.device_config<numDevices = 2>

func.func @main(%x: memref<64xf32>) {
  %cm1 = arith.constant -1 : index
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c20 = arith.constant 20 : index
  %c32 = arith.constant 32 : index
  %host = mgpu.get_device %cm1 : !mgpu.device
  %d0 = mgpu.get_device %c0 : !mgpu.device
  %d1 = mgpu.get_device %c1 : !mgpu.device
  %comm = mgpu.create_communicator %d0, %d1 : !mgpu.device, !mgpu.device -> !mgpu.communicator
  %a = mgpu.alloc %d0 : !mgpu.device -> memref<32xf32>
  %b = mgpu.alloc %d1 : !mgpu.device -> memref<32xf32>
  mgpu.scatter %x, %host, [%a, %b], [%d0, %d1] axis = 0 : memref<64xf32>, !mgpu.device, [memref<32xf32>, memref<32xf32>], [!mgpu.device, !mgpu.device]
  scf.for %trip = %c0 to %c20 step %c1 {
    %twice = arith.muli %trip, %c2 : index
    mgpu.launch %d0 grid(%c1) block(%c32) {
      %i = gpu.thread_id x
      %n = arith.index_cast %twice : index to i32
      %f = arith.sitofp %n : i32 to f32
      %v = memref.load %a[%i] : memref<32xf32>
      %w = arith.addf %v, %f : f32
      memref.store %w, %a[%i] : memref<32xf32>
    }
    // A buffer of this trip alone.
    %held = mgpu.alloc %d1 : !mgpu.device -> memref<32xf32>
    mgpu.send %a, %comm, %c1 : memref<32xf32>, !mgpu.communicator
    mgpu.recv %held, %comm, %c0 : memref<32xf32>, !mgpu.communicator
    mgpu.launch %d1 grid(%c1) block(%c32) {
      %i = gpu.thread_id x
      %shift = arith.constant 32.0 : f32
      %v = memref.load %held[%i] : memref<32xf32>
      %w = arith.addf %v, %shift : f32
      memref.store %w, %b[%i] : memref<32xf32>
    }
    mgpu.sync_device %d1 : !mgpu.device
    mgpu.free %held, %d1 : memref<32xf32>, !mgpu.device
  }
  mgpu.gather %x, %host, [%a, %b], [%d0, %d1] axis = 0 : memref<64xf32>, !mgpu.device, [memref<32xf32>, memref<32xf32>], [!mgpu.device, !mgpu.device]
  return
}
