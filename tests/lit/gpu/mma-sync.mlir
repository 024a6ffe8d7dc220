// RUN: mgpu-tune run %s | FileCheck %s

// Products of tensor cores as nvgpu writes them, each lane with the elements that PTX
// gives it, compared with loops of the host: so many sums differ.
// CHECK: bf16: 0 differ
// CHECK: half: 0 differ
// CHECK: tf32: 0 differ
// CHECK: i8: 0 differ
// CHECK: short: 0 differ
// CHECK: sparse: 0 differ
// CHECK: saturated: ( 2147483647, -2147483648 )

module attributes {gpu.container_module} {
  gpu.module @kernels {
    gpu.func @bf16(%a: memref<16x16xbf16>, %b: memref<8x16xbf16>, %c: memref<16x8xf32>) kernel {
      %t = gpu.thread_id x
      %c0 = arith.constant 0 : index
      %c2 = arith.constant 2 : index
      %c4 = arith.constant 4 : index
      %c8 = arith.constant 8 : index
      %g = arith.divui %t, %c4 : index
      %q = arith.remui %t, %c4 : index
      %h = arith.addi %g, %c8 : index
      %two = arith.muli %q, %c2 : index
      %s = arith.constant 2 : index
      %k0 = arith.muli %q, %s : index
      %o1 = arith.constant 8 : index
      %k1 = arith.addi %k0, %o1 : index
      %za = arith.constant dense<0.0> : vector<4x2xbf16>
      %a0 = vector.load %a[%g, %k0] : memref<16x16xbf16>, vector<2xbf16>
      %A0 = vector.insert %a0, %za[0] : vector<2xbf16> into vector<4x2xbf16>
      %a1 = vector.load %a[%h, %k0] : memref<16x16xbf16>, vector<2xbf16>
      %A1 = vector.insert %a1, %A0[1] : vector<2xbf16> into vector<4x2xbf16>
      %a2 = vector.load %a[%g, %k1] : memref<16x16xbf16>, vector<2xbf16>
      %A2 = vector.insert %a2, %A1[2] : vector<2xbf16> into vector<4x2xbf16>
      %a3 = vector.load %a[%h, %k1] : memref<16x16xbf16>, vector<2xbf16>
      %A3 = vector.insert %a3, %A2[3] : vector<2xbf16> into vector<4x2xbf16>
      %zb = arith.constant dense<0.0> : vector<2x2xbf16>
      %b0 = vector.load %b[%g, %k0] : memref<8x16xbf16>, vector<2xbf16>
      %B0 = vector.insert %b0, %zb[0] : vector<2xbf16> into vector<2x2xbf16>
      %b1 = vector.load %b[%g, %k1] : memref<8x16xbf16>, vector<2xbf16>
      %B1 = vector.insert %b1, %B0[1] : vector<2xbf16> into vector<2x2xbf16>
      %zc = arith.constant dense<0.0> : vector<2x2xf32>
      %c_upper = vector.load %c[%g, %two] : memref<16x8xf32>, vector<2xf32>
      %c_lower = vector.load %c[%h, %two] : memref<16x8xf32>, vector<2xf32>
      %C0 = vector.insert %c_upper, %zc[0] : vector<2xf32> into vector<2x2xf32>
      %C1 = vector.insert %c_lower, %C0[1] : vector<2xf32> into vector<2x2xf32>
      %d = nvgpu.mma.sync (%A3, %B1, %C1) {mmaShape = [16, 8, 16]} : (vector<4x2xbf16>, vector<2x2xbf16>, vector<2x2xf32>) -> vector<2x2xf32>
      %d0 = vector.extract %d[0] : vector<2xf32> from vector<2x2xf32>
      %d1 = vector.extract %d[1] : vector<2xf32> from vector<2x2xf32>
      vector.store %d0, %c[%g, %two] : memref<16x8xf32>, vector<2xf32>
      vector.store %d1, %c[%h, %two] : memref<16x8xf32>, vector<2xf32>
      gpu.return
    }
    gpu.func @half(%a: memref<16x8xf16>, %b: memref<8x8xf16>, %c: memref<16x8xf16>) kernel {
      %t = gpu.thread_id x
      %c0 = arith.constant 0 : index
      %c2 = arith.constant 2 : index
      %c4 = arith.constant 4 : index
      %c8 = arith.constant 8 : index
      %g = arith.divui %t, %c4 : index
      %q = arith.remui %t, %c4 : index
      %h = arith.addi %g, %c8 : index
      %two = arith.muli %q, %c2 : index
      %s = arith.constant 2 : index
      %k0 = arith.muli %q, %s : index
      %za = arith.constant dense<0.0> : vector<2x2xf16>
      %a0 = vector.load %a[%g, %k0] : memref<16x8xf16>, vector<2xf16>
      %A0 = vector.insert %a0, %za[0] : vector<2xf16> into vector<2x2xf16>
      %a1 = vector.load %a[%h, %k0] : memref<16x8xf16>, vector<2xf16>
      %A1 = vector.insert %a1, %A0[1] : vector<2xf16> into vector<2x2xf16>
      %zb = arith.constant dense<0.0> : vector<1x2xf16>
      %b0 = vector.load %b[%g, %k0] : memref<8x8xf16>, vector<2xf16>
      %B0 = vector.insert %b0, %zb[0] : vector<2xf16> into vector<1x2xf16>
      %zc = arith.constant dense<0.0> : vector<2x2xf16>
      %c_upper = vector.load %c[%g, %two] : memref<16x8xf16>, vector<2xf16>
      %c_lower = vector.load %c[%h, %two] : memref<16x8xf16>, vector<2xf16>
      %C0 = vector.insert %c_upper, %zc[0] : vector<2xf16> into vector<2x2xf16>
      %C1 = vector.insert %c_lower, %C0[1] : vector<2xf16> into vector<2x2xf16>
      %d = nvgpu.mma.sync (%A1, %B0, %C1) {mmaShape = [16, 8, 8]} : (vector<2x2xf16>, vector<1x2xf16>, vector<2x2xf16>) -> vector<2x2xf16>
      %d0 = vector.extract %d[0] : vector<2xf16> from vector<2x2xf16>
      %d1 = vector.extract %d[1] : vector<2xf16> from vector<2x2xf16>
      vector.store %d0, %c[%g, %two] : memref<16x8xf16>, vector<2xf16>
      vector.store %d1, %c[%h, %two] : memref<16x8xf16>, vector<2xf16>
      gpu.return
    }
    gpu.func @tf32(%a: memref<16x4xf32>, %b: memref<8x4xf32>, %c: memref<16x8xf32>) kernel {
      %t = gpu.thread_id x
      %c0 = arith.constant 0 : index
      %c2 = arith.constant 2 : index
      %c4 = arith.constant 4 : index
      %c8 = arith.constant 8 : index
      %g = arith.divui %t, %c4 : index
      %q = arith.remui %t, %c4 : index
      %h = arith.addi %g, %c8 : index
      %two = arith.muli %q, %c2 : index
      %s = arith.constant 1 : index
      %k0 = arith.muli %q, %s : index
      %za = arith.constant dense<0.0> : vector<2x1xf32>
      %a0 = vector.load %a[%g, %k0] : memref<16x4xf32>, vector<1xf32>
      %A0 = vector.insert %a0, %za[0] : vector<1xf32> into vector<2x1xf32>
      %a1 = vector.load %a[%h, %k0] : memref<16x4xf32>, vector<1xf32>
      %A1 = vector.insert %a1, %A0[1] : vector<1xf32> into vector<2x1xf32>
      %zb = arith.constant dense<0.0> : vector<1x1xf32>
      %b0 = vector.load %b[%g, %k0] : memref<8x4xf32>, vector<1xf32>
      %B0 = vector.insert %b0, %zb[0] : vector<1xf32> into vector<1x1xf32>
      %zc = arith.constant dense<0.0> : vector<2x2xf32>
      %c_upper = vector.load %c[%g, %two] : memref<16x8xf32>, vector<2xf32>
      %c_lower = vector.load %c[%h, %two] : memref<16x8xf32>, vector<2xf32>
      %C0 = vector.insert %c_upper, %zc[0] : vector<2xf32> into vector<2x2xf32>
      %C1 = vector.insert %c_lower, %C0[1] : vector<2xf32> into vector<2x2xf32>
      %d = nvgpu.mma.sync (%A1, %B0, %C1) {mmaShape = [16, 8, 4], tf32Enabled} : (vector<2x1xf32>, vector<1x1xf32>, vector<2x2xf32>) -> vector<2x2xf32>
      %d0 = vector.extract %d[0] : vector<2xf32> from vector<2x2xf32>
      %d1 = vector.extract %d[1] : vector<2xf32> from vector<2x2xf32>
      vector.store %d0, %c[%g, %two] : memref<16x8xf32>, vector<2xf32>
      vector.store %d1, %c[%h, %two] : memref<16x8xf32>, vector<2xf32>
      gpu.return
    }
    gpu.func @i8(%a: memref<16x32xi8>, %b: memref<8x32xi8>, %c: memref<16x8xi32>) kernel {
      %t = gpu.thread_id x
      %c0 = arith.constant 0 : index
      %c2 = arith.constant 2 : index
      %c4 = arith.constant 4 : index
      %c8 = arith.constant 8 : index
      %g = arith.divui %t, %c4 : index
      %q = arith.remui %t, %c4 : index
      %h = arith.addi %g, %c8 : index
      %two = arith.muli %q, %c2 : index
      %s = arith.constant 4 : index
      %k0 = arith.muli %q, %s : index
      %o1 = arith.constant 16 : index
      %k1 = arith.addi %k0, %o1 : index
      %za = arith.constant dense<0> : vector<4x4xi8>
      %a0 = vector.load %a[%g, %k0] : memref<16x32xi8>, vector<4xi8>
      %A0 = vector.insert %a0, %za[0] : vector<4xi8> into vector<4x4xi8>
      %a1 = vector.load %a[%h, %k0] : memref<16x32xi8>, vector<4xi8>
      %A1 = vector.insert %a1, %A0[1] : vector<4xi8> into vector<4x4xi8>
      %a2 = vector.load %a[%g, %k1] : memref<16x32xi8>, vector<4xi8>
      %A2 = vector.insert %a2, %A1[2] : vector<4xi8> into vector<4x4xi8>
      %a3 = vector.load %a[%h, %k1] : memref<16x32xi8>, vector<4xi8>
      %A3 = vector.insert %a3, %A2[3] : vector<4xi8> into vector<4x4xi8>
      %zb = arith.constant dense<0> : vector<2x4xi8>
      %b0 = vector.load %b[%g, %k0] : memref<8x32xi8>, vector<4xi8>
      %B0 = vector.insert %b0, %zb[0] : vector<4xi8> into vector<2x4xi8>
      %b1 = vector.load %b[%g, %k1] : memref<8x32xi8>, vector<4xi8>
      %B1 = vector.insert %b1, %B0[1] : vector<4xi8> into vector<2x4xi8>
      %zc = arith.constant dense<0> : vector<2x2xi32>
      %c_upper = vector.load %c[%g, %two] : memref<16x8xi32>, vector<2xi32>
      %c_lower = vector.load %c[%h, %two] : memref<16x8xi32>, vector<2xi32>
      %C0 = vector.insert %c_upper, %zc[0] : vector<2xi32> into vector<2x2xi32>
      %C1 = vector.insert %c_lower, %C0[1] : vector<2xi32> into vector<2x2xi32>
      %d = nvgpu.mma.sync (%A3, %B1, %C1) {mmaShape = [16, 8, 32]} : (vector<4x4xi8>, vector<2x4xi8>, vector<2x2xi32>) -> vector<2x2xi32>
      %d0 = vector.extract %d[0] : vector<2xi32> from vector<2x2xi32>
      %d1 = vector.extract %d[1] : vector<2xi32> from vector<2x2xi32>
      vector.store %d0, %c[%g, %two] : memref<16x8xi32>, vector<2xi32>
      vector.store %d1, %c[%h, %two] : memref<16x8xi32>, vector<2xi32>
      gpu.return
    }
    gpu.func @short(%a: memref<16x16xi8>, %b: memref<8x16xi8>, %c: memref<16x8xi32>) kernel {
      %t = gpu.thread_id x
      %c0 = arith.constant 0 : index
      %c2 = arith.constant 2 : index
      %c4 = arith.constant 4 : index
      %c8 = arith.constant 8 : index
      %g = arith.divui %t, %c4 : index
      %q = arith.remui %t, %c4 : index
      %h = arith.addi %g, %c8 : index
      %two = arith.muli %q, %c2 : index
      %s = arith.constant 4 : index
      %k0 = arith.muli %q, %s : index
      %za = arith.constant dense<0> : vector<2x4xi8>
      %a0 = vector.load %a[%g, %k0] : memref<16x16xi8>, vector<4xi8>
      %A0 = vector.insert %a0, %za[0] : vector<4xi8> into vector<2x4xi8>
      %a1 = vector.load %a[%h, %k0] : memref<16x16xi8>, vector<4xi8>
      %A1 = vector.insert %a1, %A0[1] : vector<4xi8> into vector<2x4xi8>
      %zb = arith.constant dense<0> : vector<1x4xi8>
      %b0 = vector.load %b[%g, %k0] : memref<8x16xi8>, vector<4xi8>
      %B0 = vector.insert %b0, %zb[0] : vector<4xi8> into vector<1x4xi8>
      %zc = arith.constant dense<0> : vector<2x2xi32>
      %c_upper = vector.load %c[%g, %two] : memref<16x8xi32>, vector<2xi32>
      %c_lower = vector.load %c[%h, %two] : memref<16x8xi32>, vector<2xi32>
      %C0 = vector.insert %c_upper, %zc[0] : vector<2xi32> into vector<2x2xi32>
      %C1 = vector.insert %c_lower, %C0[1] : vector<2xi32> into vector<2x2xi32>
      %d = nvgpu.mma.sync (%A1, %B0, %C1) {mmaShape = [16, 8, 16]} : (vector<2x4xi8>, vector<1x4xi8>, vector<2x2xi32>) -> vector<2x2xi32>
      %d0 = vector.extract %d[0] : vector<2xi32> from vector<2x2xi32>
      %d1 = vector.extract %d[1] : vector<2xi32> from vector<2x2xi32>
      vector.store %d0, %c[%g, %two] : memref<16x8xi32>, vector<2xi32>
      vector.store %d1, %c[%h, %two] : memref<16x8xi32>, vector<2xi32>
      gpu.return
    }
    // A has, of each four along k, the two at 0 and 3 in even rows and at 1 and 2 in odd ones.
    gpu.func @sparse(%a: memref<16x16xf16>, %m: memref<16x2xi16>, %b: memref<8x32xf16>, %c: memref<16x8xf16>) kernel {
      %t = gpu.thread_id x
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      %c4 = arith.constant 4 : index
      %c8 = arith.constant 8 : index
      %c16 = arith.constant 16 : index
      %c24 = arith.constant 24 : index
      %g = arith.divui %t, %c4 : index
      %q = arith.remui %t, %c4 : index
      %h = arith.addi %g, %c8 : index
      %part = arith.remui %q, %c2 : index
      %k0 = arith.muli %q, %c2 : index
      %k1 = arith.addi %k0, %c8 : index
      %k2 = arith.addi %k0, %c16 : index
      %k3 = arith.addi %k0, %c24 : index
      %m0 = memref.load %m[%g, %part] : memref<16x2xi16>
      %m1 = memref.load %m[%h, %part] : memref<16x2xi16>
      %meta = vector.from_elements %m0, %m1 : vector<2xi16>
      %zero = arith.constant dense<0.0> : vector<4x2xf16>
      %a0 = vector.load %a[%g, %k0] : memref<16x16xf16>, vector<2xf16>
      %a1 = vector.load %a[%h, %k0] : memref<16x16xf16>, vector<2xf16>
      %a2 = vector.load %a[%g, %k1] : memref<16x16xf16>, vector<2xf16>
      %a3 = vector.load %a[%h, %k1] : memref<16x16xf16>, vector<2xf16>
      %A0 = vector.insert %a0, %zero[0] : vector<2xf16> into vector<4x2xf16>
      %A1 = vector.insert %a1, %A0[1] : vector<2xf16> into vector<4x2xf16>
      %A2 = vector.insert %a2, %A1[2] : vector<2xf16> into vector<4x2xf16>
      %A3 = vector.insert %a3, %A2[3] : vector<2xf16> into vector<4x2xf16>
      %b0 = vector.load %b[%g, %k0] : memref<8x32xf16>, vector<2xf16>
      %b1 = vector.load %b[%g, %k1] : memref<8x32xf16>, vector<2xf16>
      %b2 = vector.load %b[%g, %k2] : memref<8x32xf16>, vector<2xf16>
      %b3 = vector.load %b[%g, %k3] : memref<8x32xf16>, vector<2xf16>
      %B0 = vector.insert %b0, %zero[0] : vector<2xf16> into vector<4x2xf16>
      %B1 = vector.insert %b1, %B0[1] : vector<2xf16> into vector<4x2xf16>
      %B2 = vector.insert %b2, %B1[2] : vector<2xf16> into vector<4x2xf16>
      %B3 = vector.insert %b3, %B2[3] : vector<2xf16> into vector<4x2xf16>
      %none = arith.constant dense<0.0> : vector<2x2xf16>
      %d = nvgpu.mma.sp.sync (%A3, %B3, %none) metadata (%meta) {mmaShape = [16, 8, 32]} : (vector<4x2xf16>, vector<4x2xf16>, vector<2x2xf16>) -> vector<2x2xf16>
      %d0 = vector.extract %d[0] : vector<2xf16> from vector<2x2xf16>
      %d1 = vector.extract %d[1] : vector<2xf16> from vector<2x2xf16>
      vector.store %d0, %c[%g, %k0] : memref<16x8xf16>, vector<2xf16>
      vector.store %d1, %c[%h, %k0] : memref<16x8xf16>, vector<2xf16>
      gpu.return
    }
  }
  // 3 i + 5 j modulo 7, less 3.
  func.func private @number(%i: index, %j: index) -> i32 {
    %c3 = arith.constant 3 : index
    %c5 = arith.constant 5 : index
    %c7 = arith.constant 7 : index
    %three = arith.constant 3 : i32
    %x = arith.muli %i, %c3 : index
    %y = arith.muli %j, %c5 : index
    %s = arith.addi %x, %y : index
    %r = arith.remui %s, %c7 : index
    %n = arith.index_cast %r : index to i32
    %v = arith.subi %n, %three : i32
    return %v : i32
  }
  func.func @run_bf16() {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %c16 = arith.constant 16 : index
    %c32 = arith.constant 32 : index
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %a = memref.alloc() : memref<16x16xbf16>
    %b = memref.alloc() : memref<8x16xbf16>
    %c = memref.alloc() : memref<16x8xf32>
    scf.for %i = %c0 to %c16 step %c1 {
      scf.for %j = %c0 to %c16 step %c1 {
        %n = func.call @number(%i, %j) : (index, index) -> i32
        %v = arith.sitofp %n : i32 to bf16
        memref.store %v, %a[%i, %j] : memref<16x16xbf16>
      }
    }
    scf.for %i = %c0 to %c8 step %c1 {
      scf.for %j = %c0 to %c16 step %c1 {
        %n = func.call @number(%i, %j) : (index, index) -> i32
        %v = arith.sitofp %n : i32 to bf16
        memref.store %v, %b[%i, %j] : memref<8x16xbf16>
      }
    }
    scf.for %i = %c0 to %c16 step %c1 {
      scf.for %j = %c0 to %c8 step %c1 {
        %n = func.call @number(%i, %j) : (index, index) -> i32
        %v = arith.sitofp %n : i32 to f32
        memref.store %v, %c[%i, %j] : memref<16x8xf32>
      }
    }
    gpu.launch_func @kernels::@bf16 blocks in (%c1, %c1, %c1) threads in (%c32, %c1, %c1) args(%a : memref<16x16xbf16>, %b : memref<8x16xbf16>, %c : memref<16x8xf32>)
    %wrong = scf.for %i = %c0 to %c16 step %c1 iter_args(%w0 = %zero) -> i32 {
      %w1 = scf.for %j = %c0 to %c8 step %c1 iter_args(%w2 = %w0) -> i32 {
        %first = func.call @number(%i, %j) : (index, index) -> i32
        %sum = scf.for %l = %c0 to %c16 step %c1 iter_args(%s = %first) -> i32 {
          %x = func.call @number(%i, %l) : (index, index) -> i32
          %y = func.call @number(%j, %l) : (index, index) -> i32
          %p = arith.muli %x, %y : i32
          %q = arith.addi %s, %p : i32
          scf.yield %q : i32
        }
        %got = memref.load %c[%i, %j] : memref<16x8xf32>
        %want = arith.sitofp %sum : i32 to f32
        %is = arith.cmpf une, %got, %want : f32
        %more = arith.extui %is : i1 to i32
        %w3 = arith.addi %w2, %more : i32
        scf.yield %w3 : i32
      }
      scf.yield %w1 : i32
    }
    vector.print str "bf16: "
    vector.print %wrong : i32 punctuation <no_punctuation>
    vector.print str " differ\n"
    return
  }
  func.func @run_half() {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %c16 = arith.constant 16 : index
    %c32 = arith.constant 32 : index
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %a = memref.alloc() : memref<16x8xf16>
    %b = memref.alloc() : memref<8x8xf16>
    %c = memref.alloc() : memref<16x8xf16>
    scf.for %i = %c0 to %c16 step %c1 {
      scf.for %j = %c0 to %c8 step %c1 {
        %n = func.call @number(%i, %j) : (index, index) -> i32
        %v = arith.sitofp %n : i32 to f16
        memref.store %v, %a[%i, %j] : memref<16x8xf16>
      }
    }
    scf.for %i = %c0 to %c8 step %c1 {
      scf.for %j = %c0 to %c8 step %c1 {
        %n = func.call @number(%i, %j) : (index, index) -> i32
        %v = arith.sitofp %n : i32 to f16
        memref.store %v, %b[%i, %j] : memref<8x8xf16>
      }
    }
    scf.for %i = %c0 to %c16 step %c1 {
      scf.for %j = %c0 to %c8 step %c1 {
        %n = func.call @number(%i, %j) : (index, index) -> i32
        %v = arith.sitofp %n : i32 to f16
        memref.store %v, %c[%i, %j] : memref<16x8xf16>
      }
    }
    gpu.launch_func @kernels::@half blocks in (%c1, %c1, %c1) threads in (%c32, %c1, %c1) args(%a : memref<16x8xf16>, %b : memref<8x8xf16>, %c : memref<16x8xf16>)
    %wrong = scf.for %i = %c0 to %c16 step %c1 iter_args(%w0 = %zero) -> i32 {
      %w1 = scf.for %j = %c0 to %c8 step %c1 iter_args(%w2 = %w0) -> i32 {
        %first = func.call @number(%i, %j) : (index, index) -> i32
        %sum = scf.for %l = %c0 to %c8 step %c1 iter_args(%s = %first) -> i32 {
          %x = func.call @number(%i, %l) : (index, index) -> i32
          %y = func.call @number(%j, %l) : (index, index) -> i32
          %p = arith.muli %x, %y : i32
          %q = arith.addi %s, %p : i32
          scf.yield %q : i32
        }
        %got = memref.load %c[%i, %j] : memref<16x8xf16>
        %want = arith.sitofp %sum : i32 to f16
        %is = arith.cmpf une, %got, %want : f16
        %more = arith.extui %is : i1 to i32
        %w3 = arith.addi %w2, %more : i32
        scf.yield %w3 : i32
      }
      scf.yield %w1 : i32
    }
    vector.print str "half: "
    vector.print %wrong : i32 punctuation <no_punctuation>
    vector.print str " differ\n"
    return
  }
  func.func @run_tf32() {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %c8 = arith.constant 8 : index
    %c16 = arith.constant 16 : index
    %c32 = arith.constant 32 : index
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %a = memref.alloc() : memref<16x4xf32>
    %b = memref.alloc() : memref<8x4xf32>
    %c = memref.alloc() : memref<16x8xf32>
    scf.for %i = %c0 to %c16 step %c1 {
      scf.for %j = %c0 to %c4 step %c1 {
        %n = func.call @number(%i, %j) : (index, index) -> i32
        %v = arith.sitofp %n : i32 to f32
        memref.store %v, %a[%i, %j] : memref<16x4xf32>
      }
    }
    scf.for %i = %c0 to %c8 step %c1 {
      scf.for %j = %c0 to %c4 step %c1 {
        %n = func.call @number(%i, %j) : (index, index) -> i32
        %v = arith.sitofp %n : i32 to f32
        memref.store %v, %b[%i, %j] : memref<8x4xf32>
      }
    }
    scf.for %i = %c0 to %c16 step %c1 {
      scf.for %j = %c0 to %c8 step %c1 {
        %n = func.call @number(%i, %j) : (index, index) -> i32
        %v = arith.sitofp %n : i32 to f32
        memref.store %v, %c[%i, %j] : memref<16x8xf32>
      }
    }
    gpu.launch_func @kernels::@tf32 blocks in (%c1, %c1, %c1) threads in (%c32, %c1, %c1) args(%a : memref<16x4xf32>, %b : memref<8x4xf32>, %c : memref<16x8xf32>)
    %wrong = scf.for %i = %c0 to %c16 step %c1 iter_args(%w0 = %zero) -> i32 {
      %w1 = scf.for %j = %c0 to %c8 step %c1 iter_args(%w2 = %w0) -> i32 {
        %first = func.call @number(%i, %j) : (index, index) -> i32
        %sum = scf.for %l = %c0 to %c4 step %c1 iter_args(%s = %first) -> i32 {
          %x = func.call @number(%i, %l) : (index, index) -> i32
          %y = func.call @number(%j, %l) : (index, index) -> i32
          %p = arith.muli %x, %y : i32
          %q = arith.addi %s, %p : i32
          scf.yield %q : i32
        }
        %got = memref.load %c[%i, %j] : memref<16x8xf32>
        %want = arith.sitofp %sum : i32 to f32
        %is = arith.cmpf une, %got, %want : f32
        %more = arith.extui %is : i1 to i32
        %w3 = arith.addi %w2, %more : i32
        scf.yield %w3 : i32
      }
      scf.yield %w1 : i32
    }
    vector.print str "tf32: "
    vector.print %wrong : i32 punctuation <no_punctuation>
    vector.print str " differ\n"
    return
  }
  func.func @run_i8() {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %c16 = arith.constant 16 : index
    %c32 = arith.constant 32 : index
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %a = memref.alloc() : memref<16x32xi8>
    %b = memref.alloc() : memref<8x32xi8>
    %c = memref.alloc() : memref<16x8xi32>
    scf.for %i = %c0 to %c16 step %c1 {
      scf.for %j = %c0 to %c32 step %c1 {
        %n = func.call @number(%i, %j) : (index, index) -> i32
        %v = arith.trunci %n : i32 to i8
        memref.store %v, %a[%i, %j] : memref<16x32xi8>
      }
    }
    scf.for %i = %c0 to %c8 step %c1 {
      scf.for %j = %c0 to %c32 step %c1 {
        %n = func.call @number(%i, %j) : (index, index) -> i32
        %v = arith.trunci %n : i32 to i8
        memref.store %v, %b[%i, %j] : memref<8x32xi8>
      }
    }
    scf.for %i = %c0 to %c16 step %c1 {
      scf.for %j = %c0 to %c8 step %c1 {
        %n = func.call @number(%i, %j) : (index, index) -> i32
        memref.store %n, %c[%i, %j] : memref<16x8xi32>
      }
    }
    gpu.launch_func @kernels::@i8 blocks in (%c1, %c1, %c1) threads in (%c32, %c1, %c1) args(%a : memref<16x32xi8>, %b : memref<8x32xi8>, %c : memref<16x8xi32>)
    %wrong = scf.for %i = %c0 to %c16 step %c1 iter_args(%w0 = %zero) -> i32 {
      %w1 = scf.for %j = %c0 to %c8 step %c1 iter_args(%w2 = %w0) -> i32 {
        %first = func.call @number(%i, %j) : (index, index) -> i32
        %sum = scf.for %l = %c0 to %c32 step %c1 iter_args(%s = %first) -> i32 {
          %x = func.call @number(%i, %l) : (index, index) -> i32
          %y = func.call @number(%j, %l) : (index, index) -> i32
          %p = arith.muli %x, %y : i32
          %q = arith.addi %s, %p : i32
          scf.yield %q : i32
        }
        %got = memref.load %c[%i, %j] : memref<16x8xi32>
        %is = arith.cmpi ne, %got, %sum : i32
        %more = arith.extui %is : i1 to i32
        %w3 = arith.addi %w2, %more : i32
        scf.yield %w3 : i32
      }
      scf.yield %w1 : i32
    }
    vector.print str "i8: "
    vector.print %wrong : i32 punctuation <no_punctuation>
    vector.print str " differ\n"
    return
  }
  func.func @run_short() {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %c16 = arith.constant 16 : index
    %c32 = arith.constant 32 : index
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %a = memref.alloc() : memref<16x16xi8>
    %b = memref.alloc() : memref<8x16xi8>
    %c = memref.alloc() : memref<16x8xi32>
    scf.for %i = %c0 to %c16 step %c1 {
      scf.for %j = %c0 to %c16 step %c1 {
        %n = func.call @number(%i, %j) : (index, index) -> i32
        %v = arith.trunci %n : i32 to i8
        memref.store %v, %a[%i, %j] : memref<16x16xi8>
      }
    }
    scf.for %i = %c0 to %c8 step %c1 {
      scf.for %j = %c0 to %c16 step %c1 {
        %n = func.call @number(%i, %j) : (index, index) -> i32
        %v = arith.trunci %n : i32 to i8
        memref.store %v, %b[%i, %j] : memref<8x16xi8>
      }
    }
    scf.for %i = %c0 to %c16 step %c1 {
      scf.for %j = %c0 to %c8 step %c1 {
        %n = func.call @number(%i, %j) : (index, index) -> i32
        memref.store %n, %c[%i, %j] : memref<16x8xi32>
      }
    }
    gpu.launch_func @kernels::@short blocks in (%c1, %c1, %c1) threads in (%c32, %c1, %c1) args(%a : memref<16x16xi8>, %b : memref<8x16xi8>, %c : memref<16x8xi32>)
    %wrong = scf.for %i = %c0 to %c16 step %c1 iter_args(%w0 = %zero) -> i32 {
      %w1 = scf.for %j = %c0 to %c8 step %c1 iter_args(%w2 = %w0) -> i32 {
        %first = func.call @number(%i, %j) : (index, index) -> i32
        %sum = scf.for %l = %c0 to %c16 step %c1 iter_args(%s = %first) -> i32 {
          %x = func.call @number(%i, %l) : (index, index) -> i32
          %y = func.call @number(%j, %l) : (index, index) -> i32
          %p = arith.muli %x, %y : i32
          %q = arith.addi %s, %p : i32
          scf.yield %q : i32
        }
        %got = memref.load %c[%i, %j] : memref<16x8xi32>
        %is = arith.cmpi ne, %got, %sum : i32
        %more = arith.extui %is : i1 to i32
        %w3 = arith.addi %w2, %more : i32
        scf.yield %w3 : i32
      }
      scf.yield %w1 : i32
    }
    vector.print str "short: "
    vector.print %wrong : i32 punctuation <no_punctuation>
    vector.print str " differ\n"
    return
  }
  func.func @run_sparse() {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %c4 = arith.constant 4 : index
    %c8 = arith.constant 8 : index
    %c16 = arith.constant 16 : index
    %c32 = arith.constant 32 : index
    %zero = arith.constant 0 : i32
    %even = arith.constant 0xCCCC : i16
    %odd = arith.constant 0x9999 : i16
    %a = memref.alloc() : memref<16x16xf16>
    %b = memref.alloc() : memref<8x32xf16>
    %c = memref.alloc() : memref<16x8xf16>
    %m = memref.alloc() : memref<16x2xi16>
    scf.for %i = %c0 to %c16 step %c1 {
      %r = arith.remui %i, %c2 : index
      %is = arith.cmpi eq, %r, %c0 : index
      %bits = arith.select %is, %even, %odd : i16
      memref.store %bits, %m[%i, %c0] : memref<16x2xi16>
      memref.store %bits, %m[%i, %c1] : memref<16x2xi16>
      scf.for %j = %c0 to %c16 step %c1 {
        %n = func.call @number(%i, %j) : (index, index) -> i32
        %v = arith.sitofp %n : i32 to f16
        memref.store %v, %a[%i, %j] : memref<16x16xf16>
      }
    }
    scf.for %i = %c0 to %c8 step %c1 {
      scf.for %j = %c0 to %c32 step %c1 {
        %n = func.call @number(%i, %j) : (index, index) -> i32
        %v = arith.sitofp %n : i32 to f16
        memref.store %v, %b[%i, %j] : memref<8x32xf16>
      }
    }
    gpu.launch_func @kernels::@sparse blocks in (%c1, %c1, %c1) threads in (%c32, %c1, %c1)
        args(%a : memref<16x16xf16>, %m : memref<16x2xi16>, %b : memref<8x32xf16>, %c : memref<16x8xf16>)
    %wrong = scf.for %i = %c0 to %c16 step %c1 iter_args(%w0 = %zero) -> i32 {
      %parity = arith.remui %i, %c2 : index
      %isEven = arith.cmpi eq, %parity, %c0 : index
      %w1 = scf.for %j = %c0 to %c8 step %c1 iter_args(%w2 = %w0) -> i32 {
        %sum = scf.for %l = %c0 to %c16 step %c1 iter_args(%s = %zero) -> i32 {
          %x = func.call @number(%i, %l) : (index, index) -> i32
          // Element l is at place 0 or 3, or at 1 or 2, of the four of number l / 2.
          %half = arith.divui %l, %c2 : index
          %which = arith.remui %l, %c2 : index
          %three = arith.muli %which, %c3 : index
          %next = arith.addi %which, %c1 : index
          %place = arith.select %isEven, %three, %next : index
          %four = arith.muli %half, %c4 : index
          %k = arith.addi %four, %place : index
          %y = func.call @number(%j, %k) : (index, index) -> i32
          %p = arith.muli %x, %y : i32
          %q = arith.addi %s, %p : i32
          scf.yield %q : i32
        }
        %got = memref.load %c[%i, %j] : memref<16x8xf16>
        %want = arith.sitofp %sum : i32 to f16
        %is = arith.cmpf une, %got, %want : f16
        %more = arith.extui %is : i1 to i32
        %w3 = arith.addi %w2, %more : i32
        scf.yield %w3 : i32
      }
      scf.yield %w1 : i32
    }
    vector.print str "sparse: "
    vector.print %wrong : i32 punctuation <no_punctuation>
    vector.print str " differ\n"
    return
  }
  // One product more than i32 has, at the top and at the bottom.
  func.func @run_saturated() {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %c32 = arith.constant 32 : index
    %most = arith.constant 2147483600 : i32
    %least = arith.constant -2147483600 : i32
    %two = arith.constant 2 : i8
    %less = arith.constant -2 : i8
    %a = memref.alloc() : memref<16x16xi8>
    %b = memref.alloc() : memref<8x16xi8>
    %c = memref.alloc() : memref<16x8xi32>
    linalg.fill ins(%two : i8) outs(%a : memref<16x16xi8>)
    linalg.fill ins(%two : i8) outs(%b : memref<8x16xi8>)
    linalg.fill ins(%most : i32) outs(%c : memref<16x8xi32>)
    %row = memref.subview %b[1, 0] [1, 16] [1, 1] : memref<8x16xi8> to memref<1x16xi8, strided<[16, 1], offset: 16>>
    linalg.fill ins(%less : i8) outs(%row : memref<1x16xi8, strided<[16, 1], offset: 16>>)
    memref.store %least, %c[%c0, %c1] : memref<16x8xi32>
    gpu.launch_func @kernels::@short blocks in (%c1, %c1, %c1) threads in (%c32, %c1, %c1)
        args(%a : memref<16x16xi8>, %b : memref<8x16xi8>, %c : memref<16x8xi32>)
    %v = vector.load %c[%c0, %c0] : memref<16x8xi32>, vector<2xi32>
    vector.print str "saturated: "
    vector.print %v : vector<2xi32>
    return
  }
  func.func @main() {
    call @run_bf16() : () -> ()
    call @run_half() : () -> ()
    call @run_tf32() : () -> ()
    call @run_i8() : () -> ()
    call @run_short() : () -> ()
    call @run_sparse() : () -> ()
    call @run_saturated() : () -> ()
    return
  }
}
