// RUN: mgpu-tune run %s --target host:2 --arg a=2.5 --arg n=40 --arg x=iota --out x=%t.npy
// RUN: %python -c "import sys,struct; b=open(sys.argv[1],'rb').read()[-256:]; print(*struct.unpack('<64f',b))" %t.npy | FileCheck %s
// RUN: mgpu-tune run %s --target host:2 --arg a=2.5 --arg n=40 --arg x=iota --out x=%t.2.npy --role a=specialised --role n=specialised
// RUN: cmp %t.npy %t.2.npy
// RUN: mgpu-tune plan %s -o - | FileCheck %s --check-prefix=PLAN
// RUN: not mgpu-tune run %s --target host:2 --arg a=2.5 --arg x=iota 2>&1 | FileCheck %s --check-prefix=MISSING

// A dynamic scalar is not part of the plan: kernels read it from device memory,
// where one copy for each device and scalar puts it.
// CHECK: 0.0 2.5 5.0 {{.*}} 95.0 97.5 32.0 33.0 {{.*}} 55.0
// PLAN-COUNT-4: step {{[0-9]+}} "{{a|n}}.parameter
// PLAN-NOT: parameter{{.*}} on
// MISSING: argument 'n' is read but has no value; give --arg n=VALUE

mgpu.device_config @config #mgpu.device_config<numDevices = 2>

func.func @main(%a: f32 {mgpu.role = "dynamic"}, %n: index {mgpu.role = "dynamic"}, %x: memref<64xf32>) {
  %cm1 = arith.constant -1 : index
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  %host = mgpu.get_device %cm1 : !mgpu.device
  %two = arith.constant 2 : index
  scf.for %k = %c0 to %two step %c1 {
    %d = mgpu.get_device %k : !mgpu.device
    %v = mgpu.alloc %d : !mgpu.device -> memref<32xf32>
    %from = arith.muli %k, %c32 : index
    %part = memref.subview %x[%from] [32] [1] : memref<64xf32> to memref<32xf32, strided<[1], offset: ?>>
    mgpu.memcpy %v, %part, %d, %host : memref<32xf32>, memref<32xf32, strided<[1], offset: ?>>, !mgpu.device, !mgpu.device
    // Twice, so that the second launch finds the copy made for the first.
    mgpu.launch %d grid(%c1) block(%c32) {
      %t = gpu.thread_id x
      %i = arith.addi %from, %t : index
      %inside = arith.cmpi slt, %i, %n : index
      scf.if %inside {
        %old = memref.load %v[%t] : memref<32xf32>
        %new = arith.mulf %a, %old : f32
        memref.store %new, %v[%t] : memref<32xf32>
      }
    }
    mgpu.launch %d grid(%c1) block(%c32) {
      %t = gpu.thread_id x
      %i = arith.addi %from, %t : index
      %outside = arith.cmpi sge, %i, %n : index
      scf.if %outside {
        %old = memref.load %v[%t] : memref<32xf32>
        %eight = arith.constant 8.0 : f32
        %new = arith.subf %old, %eight : f32
        memref.store %new, %v[%t] : memref<32xf32>
      }
    }
    mgpu.memcpy %part, %v, %host, %d : memref<32xf32, strided<[1], offset: ?>>, memref<32xf32>, !mgpu.device, !mgpu.device
    mgpu.free %v, %d : memref<32xf32>, !mgpu.device
  }
  return
}
