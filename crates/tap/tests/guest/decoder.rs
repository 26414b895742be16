//! Results of the plugin's decoder on instructions, by bytes.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

const CASES: &[(&str, &str)] = &[
    // plain
    ("488b07", "memory loads"),                  // mov (%rdi),%rax
    ("488907", "memory stores"),                 // mov %rax,(%rdi)
    ("4889c7", ""),                              // mov %rax,%rdi
    ("488d4708", ""),                            // lea 8(%rdi),%rax
    ("a31122334455667788", "memory stores"),     // movabs %eax,...
    ("50", "memory stores"),                     // push %rax
    ("c9", "memory loads"),                      // leave
    ("f3a4", "memory"),                          // rep movsb
    ("f348ab", "memory stores"),                 // rep stos
    ("0fb607", "memory loads"),                  // movzbl (%rdi),%eax
    ("f30f1efa", ""),                            // endbr64
    ("0f1f4000", ""),                            // nopl 0(%rax)
    ("ff2425d0113000", "memory loads computed"), // jmp *mem
    ("ffe0", "computed"),                        // jmp *%rax
    ("74fe", "condition"),                       // je
    ("0f8510000000", "condition"),               // jne
    ("e3fe", "condition"),                       // jrcxz
    ("eb10", ""),                                // jmp
    ("65488b042500000000", "memory gs loads"),   // mov %gs:0,%rax
    ("6548891d00000000", "memory gs stores"),    // mov %rbx,%gs:0(%rip)
    // read-modify-write
    ("480107", "memory rmw"),         // add %rax,(%rdi)
    ("480307", "memory loads"),       // add (%rdi),%rax
    ("483907", "memory loads"),       // cmp %rax,(%rdi)
    ("833f05", "memory loads"),       // cmpl $5,(%rdi)
    ("830705", "memory rmw"),         // addl $5,(%rdi)
    ("ff07", "memory rmw"),           // incl (%rdi)
    ("ffc0", ""),                     // inc %eax
    ("d127", "memory rmw"),           // shll (%rdi)
    ("f71f", "memory rmw"),           // negl (%rdi)
    ("f717", "memory rmw"),           // notl (%rdi)
    ("f707ff000000", "memory loads"), // testl $255,(%rdi)
    ("0fab07", "memory rmw"),         // bts %eax,(%rdi)
    ("0fa307", "memory loads"),       // bt %eax,(%rdi)
    ("0fba2f03", "memory rmw"),       // btsl $3,(%rdi)
    ("0fba2703", "memory"),           // btl $3,(%rdi)
    ("480fb10f", "memory rmw"),       // cmpxchg %rcx,(%rdi)
    ("480fc107", "memory rmw"),       // xadd %rax,(%rdi)
    ("480fc70f", "memory wide rmw"),  // cmpxchg16b (%rdi)
    // one way alone
    ("8e1f", "memory"),                // mov (%rdi),%ds: reads a descriptor, marks it
    ("8c1f", "memory stores"),         // mov %ds,(%rdi)
    ("c70705000000", "memory stores"), // movl $5,(%rdi)
    ("8f07", "memory"),                // pop (%rdi)
    ("58", "memory loads"),            // pop %rax
    ("f3a6", "memory loads"),          // repe cmpsb
    ("0f4407", "memory loads"),        // cmove (%rdi),%eax
    ("0f9407", "memory stores"),       // sete (%rdi)
    ("f20f1107", "memory stores"),     // movsd %xmm0,(%rdi)
    ("660f7e07", "memory stores"),     // movd %xmm0,(%rdi)
    ("f30f7e07", "memory loads"),      // movq (%rdi),%xmm0
    ("660fd607", "memory stores"),     // movq %xmm0,(%rdi)
    ("f7f7", ""),                      // div %edi
    ("f737", "memory loads"),          // divl (%rdi)
    ("ff37", "memory"),                // push (%rdi)
    // atomic
    ("f048ff07", "memory atomic"),        // lock incq (%rdi)
    ("f0480fb10f", "memory atomic"),      // lock cmpxchg
    ("f0480fc70f", "memory atomic pair"), // lock cmpxchg16b
    ("48870f", "memory atomic"),          // xchg %rcx,(%rdi)
    ("4887cf", ""),                       // xchg %rcx,%rdi
    // calls
    ("e800000000", "memory call stores"),
    ("ff17", "memory call computed"),        // call *(%rdi)
    ("ffd0", "memory call stores computed"), // call *%rax
    ("c3", "memory return loads"),
    ("f3c3", "memory return loads"),
    ("48cf", "memory fence iret"),
    // vectors
    ("f30f6f07", "memory wide loads"),   // movdqu (%rdi),%xmm0
    ("c5fe6f07", "memory wide loads"),   // vmovdqu (%rdi),%ymm0
    ("c4c17e6f07", "memory wide loads"), // vmovdqu (%r15),%ymm0
    ("f20f1007", "memory loads"),        // movsd (%rdi),%xmm0
    ("f30f5807", "memory loads"),        // addss (%rdi),%xmm0
    ("660f5807", "memory wide loads"),   // addpd (%rdi),%xmm0
    ("0f1207", "memory loads"),          // movlps (%rdi),%xmm0
    ("f30f1207", "memory wide loads"),   // movsldup (%rdi),%xmm0
    ("0f6f07", "memory loads"),          // movq (%rdi),%mm0
    ("660f380007", "memory wide"),       // pshufb (%rdi),%xmm0
    ("c4e27d9007", "memory"),            // vpgatherdd
    ("c4e2f8f207", "memory"),            // andn (%rdi),%rax,%rax
    ("660f3a0f0701", "memory wide"),     // palignr
    ("db2f", "memory wide"),             // fldt (%rdi)
    ("dd07", "memory"),                  // fldl (%rdi)
    ("d8c1", ""),                        // fadd %st(1),%st
    ("0fae07", "memory wide"),           // fxsave
    ("480fc727", "memory wide"),         // xsavec64
    ("0fae17", "memory"),                // ldmxcsr
    // non-temporal
    ("0f2b07", "memory nt wide"),   // movntps
    ("660fe707", "memory nt wide"), // movntdq
    ("c5fde707", "memory nt wide"), // vmovntdq %ymm0,(%rdi)
    ("0fe707", "memory nt"),        // movntq
    ("480fc307", "memory nt"),      // movnti
    ("660f382a07", "memory wide"),  // movntdqa: a load
    ("660ff7c1", "memory nt wide"), // maskmovdqu
    // ordering, prefetch, privileged
    ("0faef8", "fence"),        // sfence
    ("0faef0", "fence"),        // mfence
    ("0faee8", ""),             // lfence
    ("0fae3f", ""),             // clflush (%rdi)
    ("0f1807", "prefetch"),     // prefetchnta
    ("0f180f", "prefetch"),     // prefetcht0
    ("0f0d0f", "prefetch"),     // prefetchw
    ("0f22d8", "tlbflush"),     // mov %rax,%cr3
    ("0f20d8", ""),             // mov %cr3,%rax
    ("0f013f", "tlbflush"),     // invlpg (%rdi)
    ("660f388207", "tlbflush"), // invpcid
    ("f4", "halt"),
    ("0f01c9", "halt"), // mwait
    ("0f01c8", ""),     // monitor
    ("68ff000000", "memory pushimm stores"),
    ("6aff", "memory pushimm stores"),
    ("0f1f840001004d4e", "trigger"), // nopl 0x4e4d0001(%rax,%rax,1)
    ("0f1f840000000000", "trigger"), // an ordinary long nop: its immediate is no trigger's
];

fn sorted(words: &str) -> Vec<&str> {
    let mut words: Vec<_> = words.split_whitespace().collect();
    words.sort_unstable();
    words
}

#[test]
fn every_kind_of_access_is_decoded_from_its_bytes() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../native/tap");
    let scratch = tempfile::tempdir().unwrap();
    let program = scratch.path().join("decode");
    let built = Command::new("cc")
        .args(["-std=gnu11", "-O1", "-fsanitize=undefined", "-fno-sanitize-recover", "-o"])
        .args([&program, &folder.join("tests/decode_cli.c"), &folder.join("decode.c")])
        .status();
    if !built.is_ok_and(|status| status.success()) {
        println!("skipped: no C compiler with sanitizers");
        return;
    }
    let mut child = Command::new(&program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let input: String = CASES.iter().map(|(bytes, _)| format!("{bytes}\n")).collect();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.lines().count(), CASES.len());
    for ((bytes, expected), got) in CASES.iter().zip(text.lines()) {
        assert_eq!(sorted(got), sorted(expected), "{bytes}");
    }
}
