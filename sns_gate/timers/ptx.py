"""Two small kernels in PTX: one holds the queue, one reads the device's own clock.

PTX 6.4 for sm_50 runs on every GPU that torch 2.4 and newer support; the driver compiles it.
"""

#: hold(flag, limit_ns, out): spin until the 32-bit word at ``flag`` is not 0 or the time limit is
#: over; store how long that took, in ns.
#: clock(spin_ns, out): from one tick of globaltimer on, spin for the given time; store the advance
#: of clock64 and of globaltimer.
SOURCE = b"""
.version 6.4
.target sm_50
.address_size 64

.visible .entry sns_hold(.param .u64 p_flag, .param .u64 p_limit, .param .u64 p_out)
{
  .reg .pred %p<3>;
  .reg .b32 %r<2>;
  .reg .b64 %d<8>;
  ld.param.u64 %d1, [p_flag];
  ld.param.u64 %d2, [p_limit];
  ld.param.u64 %d3, [p_out];
  mov.u64 %d4, %globaltimer;
HOLD_AGAIN:
  mov.u64 %d5, %globaltimer;
  sub.u64 %d6, %d5, %d4;
  ld.volatile.u32 %r1, [%d1];
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra HOLD_DONE;
  setp.lt.u64 %p2, %d6, %d2;
  @%p2 bra HOLD_AGAIN;
HOLD_DONE:
  st.volatile.u64 [%d3], %d6;
  ret;
}

.visible .entry sns_clock(.param .u64 p_spin, .param .u64 p_out)
{
  .reg .pred %p<3>;
  .reg .b64 %d<12>;
  ld.param.u64 %d1, [p_spin];
  ld.param.u64 %d2, [p_out];
  mov.u64 %d3, %globaltimer;
CLOCK_EDGE:
  mov.u64 %d4, %globaltimer;
  setp.eq.u64 %p1, %d4, %d3;
  @%p1 bra CLOCK_EDGE;
  mov.u64 %d5, %clock64;
CLOCK_AGAIN:
  mov.u64 %d6, %globaltimer;
  sub.u64 %d7, %d6, %d4;
  setp.lt.u64 %p2, %d7, %d1;
  @%p2 bra CLOCK_AGAIN;
  mov.u64 %d8, %clock64;
  sub.u64 %d9, %d8, %d5;
  st.volatile.u64 [%d2], %d9;
  st.volatile.u64 [%d2+8], %d7;
  ret;
}
"""
