# Loops that store: to one place, to places at one distance, and elsewhere as well. rdi, rsi: data, rcx: turns. A test
# compares the distances from each labelled store to the stores of its loop.
	.intel_syntax noprefix
	.text
	.globl _start
_start:

lone:
lone_addition:
	add	qword ptr [rdi], rdx
	add	rdx, qword ptr [rsi]
	dec	rcx
	jne	lone
	ret

fields:
	add	qword ptr [rdi+8], 1
fields_middle:
	mov	qword ptr [rdi+16], rdx
	inc	qword ptr [rdi+72]
	dec	rcx
	jne	fields
	ret

two_objects:
two_objects_store:
	mov	qword ptr [rdi], rdx
	mov	qword ptr [rsi], rdx
	dec	rcx
	jne	two_objects
	ret

spilled:
spilled_store:
	mov	qword ptr [rdi], rdx
	mov	qword ptr [rsp-8], rdx
	dec	rcx
	jne	spilled
	ret

calling:
calling_store:
	mov	qword ptr [rdi], rdx
	call	straight
	dec	rcx
	jne	calling
	ret

straight:
straight_store:
	mov	qword ptr [rdi], rdx
	ret
