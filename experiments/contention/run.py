#!/usr/bin/env python3
"""Builds the planted programs and their twins, measures them, lets the tool judge them.

Without a part named, all are done: build, measure, judge, table."""
import argparse, json, os, random, re, statistics, subprocess, sys, time

HERE = os.path.dirname(os.path.abspath(__file__))

# name: threads, ns of work between accesses, kind of access,
#   what names the object: `v:NAME` a variable, `a:TEXT` the source line with this text,
#   what the twin does, whether the twin still passes lines between CPUs by design
PROGRAMS = {
    'stores':     (2, 0,   'stores',        ['v:latest'], 'aligned slots', False),
    'atomics16':  (4, 20,  'atomics',       ['v:tallies'], 'aligned elements', False),
    'oneword':    (2, 20,  'atomics',       ['v:requests'], 'sums per thread', False),
    'mixed24':    (2, 20,  'loads, stores', ['v:filters', 'a:filters = aligned_alloc'], 'aligned elements', False),
    'onesided':   (2, 0,   'store / load',  ['v:state'], 'padding', False),
    'shortlived': (2, 20,  'loads, stores', ['v:parts'], 'aligned parts', False),
    'processes':  (2, 0,   'atomics',       ['v:board', 'a:= mmap('], 'padding', False),
    'workers40':  (4, 200, 'loads, stores', ['v:workers', 'a:workers(threads)', r'r:vector<Worker'], 'aligned elements', False),
    'elements72': (2, 0,   'loads, stores', ['v:sessions'], 'aligned elements', False),
    'elements96': (4, 20,  'loads, stores', ['v:accounts', 'a:*accounts = aligned_alloc'], 'aligned elements', False),
    'misaligned': (2, 20,  'loads, stores', ['v:block', 'v:lanes', 'a:block = malloc', 'a:block = aligned_alloc'], 'aligned block', False),
    'heapblocks': (4, 20,  'loads, stores', ['a:m = malloc', 'r:new_meter'], 'a line a block', False),
    'stackparts': (2, 20,  'loads, stores', ['v:part', 'r:stack'], 'sums per thread', False),
    'globals':    (2, 0,   'loads, stores', ['v:bytes_received', 'v:bytes_sent'], 'aligned variables', False),
    'tlspool':    (4, 200, 'loads, stores', ['v:pool', 'a:pool = aligned_alloc'], 'stride of a line', False),
    'spindata':   (2, 20,  'lock and data', ['v:table'], 'lock apart', True),
    'mutexhot':   (2, 20,  'lock / stores', ['v:cache'], 'padding', False),
    'queue':      (2, 20,  'head and tail', ['v:queue'], 'indices apart, copies', True),
    'ringslots':  (2, 0,   'loads, stores', ['v:events'], 'stripes of a line', False),
    'refcount':   (4, 20,  'atomics',       ['v:doc', 'a:make_shared', 'r:Sp_counted|Document'], 'by reference', False),
    'seqlock':    (2, 20,  'seqlock',       ['v:clk'], 'counter apart', False),
    'config':     (4, 20,  'store / load',  ['v:config'], 'counter apart', False),
    'middlepad':  (2, 0,   'loads, stores', ['v:lru'], 'header a line long', False),
    'percpu':     (4, 200, 'atomics',       ['v:stats'], 'aligned elements', False),
}

CONTENTION = re.compile(r'between CPUs|false sharing|true sharing|contend|contention|bounc', re.I)


def source(name):
    for ext in ('.c', '.cc'):
        if os.path.exists(os.path.join(HERE, name + ext)):
            return os.path.join(HERE, name + ext)
    sys.exit('no source of ' + name)


def binary(work, name, twin):
    return os.path.join(work, 'bin', name + ('-twin' if twin else ''))


def machine():
    model = next((l.split(':')[1].strip() for l in open('/proc/cpuinfo') if l.startswith('model name')), '?')
    family = ' '.join(l.split(':')[1].strip() for l in open('/proc/cpuinfo')
                      if l.startswith(('cpu family', 'model\t')))
    ids = family.split()[:2]
    load = open('/proc/loadavg').read().split()
    return '%s, family %s model %s, %d CPUs; %s; load %s, %s' % (
        model, *ids, os.cpu_count(), time.strftime('%Y-%m-%d %H:%M'), load[0], load[3])


def build(work, names):
    os.makedirs(os.path.join(work, 'bin'), exist_ok=True)
    for n in names:
        src = source(n)
        cc = 'g++' if src.endswith('.cc') else 'gcc'
        for twin in (False, True):
            subprocess.run([cc, '-O2', '-g', '-Wall', '-Wextra', '-pthread', '-o', binary(work, n, twin),
                            os.path.basename(src)] + ['-DTWIN'] * twin, cwd=HERE, check=True)


def busy():
    f = open('/proc/stat').readline().split()
    return sum(int(f[i]) for i in (1, 2, 3, 6, 7, 8)) / os.sysconf('SC_CLK_TCK')


def at_once(data):
    """CPU seconds spent while one task of the program ran, and while several did."""
    r = subprocess.run(['perf', 'script', '-i', data, '--show-switch-events', '--show-task-events', '-F', 'tid,time'],
                       capture_output=True, text=True)
    on, alone, together, last = set(), 0.0, 0.0, None
    for l in r.stdout.split('\n'):
        f = re.search(r'(\d+)\s+(?:\[.*?\]\s+)?([\d.]+):\s+PERF_RECORD_(SWITCH\s+IN|SWITCH\s+OUT|EXIT)', l)
        if not f:
            continue
        at = float(f.group(2))
        if last is not None and on:
            if len(on) > 1:
                together += len(on) * (at - last)
            else:
                alone += at - last
        last = at
        (on.add if f.group(3).endswith('IN') else on.discard)(f.group(1))
    return alone, together


def once(path, data=None):
    argv = [path]
    if data:
        argv = ['perf', 'record', '-q', '--switch-events', '-e', 'dummy:u', '-o', data, '--', path]
    b, t = busy(), time.monotonic()
    pid = os.posix_spawnp(argv[0], argv, os.environ,
                          file_actions=[(os.POSIX_SPAWN_OPEN, i, '/dev/null', os.O_WRONLY, 0) for i in (1, 2)])
    _, status, ru = os.wait4(pid, 0)
    wall, b = time.monotonic() - t, busy() - b
    if status:
        sys.exit('%s: status %d' % (path, status))
    cpu = ru.ru_utime + ru.ru_stime
    return {'cpu': cpu, 'wall': wall, 'others': max(0.0, b - cpu) / (wall * os.cpu_count())}


def quiet(pair):
    return max(pair['faulty']['others'], pair['twin']['others']) <= 0.15


def measure(work, names, pairs, until, keep):
    path = os.path.join(work, 'measured.json')
    m = json.load(open(path)) if keep and os.path.exists(path) else {'pairs': {}}
    m.setdefault('begun', machine())
    data = os.path.join(work, 'perf.data')
    rounds = 0
    while True:
        left = [n for n in names if sum(map(quiet, m['pairs'].get(n, []))) < pairs]
        if not left or (until and time.time() > until) or (not until and rounds >= 2 * pairs):
            break
        for n in left:
            if until and time.time() > until:
                break
            for _ in range(20):
                if int(open('/proc/loadavg').read().split()[3].split('/')[0]) <= 2:
                    break
                time.sleep(0.05)
            pair = {}
            for twin in ((False, True) if rounds % 2 == 0 else (True, False)):
                one = once(binary(work, n, twin), data)
                one['alone'], one['together'] = at_once(data)
                one['cpu'] = one['alone'] + one['together']
                pair['twin' if twin else 'faulty'] = one
            pair['at'] = time.strftime('%H:%M:%S')
            m['pairs'].setdefault(n, []).append(pair)
            m['ended'] = machine()
            with open(path + '.new', 'w') as f:
                json.dump(m, f)
            os.rename(path + '.new', path)
        rounds += 1
    for n in names:
        p = m['pairs'].get(n, [])
        print('%-11s %2d pairs, %2d quiet' % (n, len(p), sum(map(quiet, p))))


def judge(work, names, tool, until, which, nice):
    os.makedirs(os.path.join(work, 'judged'), exist_ok=True)
    open(os.path.join(work, 'judged', 'begun'), 'a').write(machine() + '\n')
    for twin in which:
        for n in names:
            v = n + ('-twin' if twin else '')
            out = os.path.join(work, 'judged', v + '.json')
            if os.path.exists(out) or (until and time.time() > until):
                continue
            t = time.monotonic()
            try:
                r = subprocess.run(['nice', '-n', str(nice), tool, 'diagnose', '--runs', os.path.join(work, 'runs', v),
                                    '--json', '--', './' + v], cwd=os.path.join(work, 'bin'),
                                   capture_output=True, text=True, timeout=300)
                answer = {'findings': None} if r.returncode > 1 else json.loads(r.stdout[r.stdout.index('{"schema'):].split('\n')[0])
                answer['rc'], answer['stderr'] = r.returncode, r.stderr
            except (subprocess.TimeoutExpired, ValueError) as e:
                answer = {'findings': None, 'stderr': str(e)}
            answer['seconds'] = time.monotonic() - t
            json.dump(answer, open(out, 'w'), indent=1)
            print('%s %-16s %3.0f s  %s' % (time.strftime('%H:%M:%S'), v, answer['seconds'],
                  [f['remedy'] for f in answer['findings'] or []]), flush=True)


def about(finding):
    text = [finding['symptom'], finding.get('cause') or '', finding.get('treatment') or '']
    ev = finding.get('evidence') or {}
    text += ['%-10s %s' % (l.get('label', ''), l.get('text', '')) for l in ev.get('lines', [])]
    reach = finding.get('reach')
    reach = reach if isinstance(reach, dict) else {}
    for part in reach.values():
        if isinstance(part, dict):
            text += [str(x) for x in part.values()]
    return '\n'.join(text)


def contention(finding):
    return finding['remedy'] == 'apart' or bool(CONTENTION.search(about(finding)))


def names_object(name, text):
    src = source(name)
    lines = open(src).read().split('\n')
    for key in PROGRAMS[name][3]:
        kind, what = key[0], key[2:]
        if kind == 'v' and re.search(r'`%s\b' % re.escape(what), text):
            return True
        if kind == 'r' and re.search(what, text):
            return True
        if kind == 'a':
            for i, l in enumerate(lines, 1):
                if what in l and re.search(r'%s:%d\b' % (re.escape(os.path.basename(src)), i), text):
                    return True
    return False


def answers(work, v):
    path = os.path.join(work, 'judged', v + '.json')
    if not os.path.exists(path):
        return None
    found = json.load(open(path))['findings']
    return None if found is None else [f for f in found if contention(f)]


def notes(work, v):
    return ' '.join(json.load(open(os.path.join(work, 'judged', v + '.json'))).get('notes') or [])


def gain(found):
    return max([(f.get('prediction') or {}).get('gain') or 0.0 for f in found], default=0.0)


def share_at_once(pairs):
    """The saving of the seconds that several tasks spent at once: cpu = work of the twin + saving * seconds at once."""
    base = statistics.median(p['twin']['cpu'] for p in pairs)
    top = sum(p['faulty']['together'] * (p['faulty']['cpu'] - base) for p in pairs)
    below = sum(p['faulty']['together'] ** 2 for p in pairs)
    return top / below if below else 0.0


def saving(pairs):
    """Quartiles, a mark (how they came about), pairs used."""
    quartiles = lambda s: statistics.quantiles(s, n=4, method='inclusive') if len(s) > 1 else s * 3
    plain = lambda some: quartiles([1 - p['twin']['cpu'] / p['faulty']['cpu'] for p in some])
    used = [p for p in pairs if quiet(p)]
    if len(used) >= 3:
        return plain(used), ' ', len(used)
    base = statistics.median(p['twin']['cpu'] for p in pairs)
    if sum(p['faulty']['together'] for p in pairs) >= 0.3 * base and \
            sum(p['faulty']['together'] >= 0.03 * base for p in pairs) >= 4:
        draw = random.Random(1)
        q = quartiles([share_at_once(draw.choices(pairs, k=len(pairs))) for _ in range(2000)])
        if q[2] - q[0] <= 0.20 and q[1] <= 1:
            return [q[0], share_at_once(pairs), q[2]], '~', len(pairs)
    return plain(pairs), '*', len(pairs)


def table(work, names, out):
    path = os.path.join(work, 'measured.json')
    m = json.load(open(path)) if os.path.exists(path) else {'pairs': {}}
    wrong, sums, twins, judged_twins = [], [], 0, 0
    w = lambda s='': (print(s), out.write(s + '\n'))
    w('table written on: ' + machine())
    w('measured:         %s  to  %s' % (m.get('begun'), m.get('ended')))
    begun = os.path.join(work, 'judged', 'begun')
    if os.path.exists(begun):
        w('judged from:      ' + open(begun).readline().strip())
    w('faulty, twin: user + system seconds, medians over all pairs. at once: share of the faulty runs\' seconds in which')
    w('several of its tasks ran. pairs: used / run. saving, quartiles and median: 1 - twin / faulty over the pairs beside')
    w('which others took at most 15% of the CPUs; where fewer than 3 are, that of the seconds at once alone, fitted to')
    w('all pairs, quartiles by drawing pairs again (~); where those lie more than 20 points apart, over all pairs (*):')
    w('no measure of the fault, as its tasks hardly ran at once.')
    w('finding: remedy named for the faulty program (not yet: more is to be recorded); object: is it named; pred: gain predicted, and its bounds; twin:')
    w('findings of contention on it. wrong: prediction: more than 20 points off, not judged where the saving is *, and missed? there.')
    w()
    w('%-11s %2s %3s %-13s %6s %6s %7s %6s %17s  %-10s %-6s %15s  %-14s %s' % (
        'program', 'T', 'ns', 'accesses', 'faulty', 'twin', 'at once', 'pairs', 'saving q1 med q3', 'finding', 'object', 'pred', 'twin', 'wrong'))
    for n in names:
        t, ns, acc, _, _, design = PROGRAMS[n]
        med, mark = None, ''
        allp = m['pairs'].get(n, [])
        if allp:
            q, mark, used = saving(allp)
            med = q[1]
            spent = sum(p['faulty']['cpu'] for p in allp)
            nums = ('%6.3f' % statistics.median(p['faulty']['cpu'] for p in allp),
                    '%6.3f' % statistics.median(p['twin']['cpu'] for p in allp),
                    '%3.0f%%' % (100 * sum(p['faulty']['together'] for p in allp) / spent),
                    '%d/%d' % (used, len(allp)), '%4.0f %4.0f %4.0f%%%s' % (*(100 * x for x in q), mark))
        else:
            nums = ('', '', '', '0', '')
        f, tw = answers(work, n), answers(work, n + '-twin')
        verdicts = []
        if f is None:
            what, obj, pred = 'not judged', '', ''
        else:
            hit = [x for x in f if names_object(n, about(x))]
            what = ','.join(dict.fromkeys(x['remedy'] for x in (hit or f))) or 'none'
            obj = 'right' if hit else ('wrong' if f else '-')
            g = gain(hit or f)
            bounds = [(x.get('prediction') or {}) for x in (hit or f)][:1]
            pred = '%.0f%%' % (100 * g) + ''.join(' %.0f..%.0f' % (100 * x['low'], 100 * x['high'])
                                                  for x in bounds if x.get('low') is not None)
            if not f and 'no finding yet' in notes(work, n):
                what = 'not yet'
            if not f and mark in '*':
                verdicts.append('missed?')
            elif not f and med >= 0.05:
                verdicts.append('missed')
            if f and not hit:
                verdicts.append('object')
            if med is not None and mark != '*' and abs(g - med) > 0.20:
                verdicts.append('prediction')
        if tw is None:
            twin = 'not judged'
        else:
            judged_twins += 1
            twin = ','.join('%s %.0f%%' % (x['remedy'], 100 * gain([x])) for x in tw) or 'none'
            if tw:
                verdicts.append('twin' + (' (design)' if design else ''))
        w('%-11s %2d %3d %-13s %6s %6s %7s %6s %17s  %-10s %-6s %15s  %-14s %s' % (
            n, t, ns, acc, *nums, what, obj, pred, twin, ', '.join(verdicts)))
        if verdicts:
            wrong.append((n, verdicts))
        if f is not None and med is not None and mark != '*':
            sums.append((med >= 0.05, bool(f), bool(f and hit), abs(g - med) <= 0.20))
        twins += bool(tw and not design)
    gains = [s for s in sums if s[0]]
    w()
    w('of %d programs whose twin saves 5%% and more: %d found, %d by the right object; of %d others: %d with a finding' % (
        len(gains), sum(s[1] for s in gains), sum(s[2] for s in gains), len(sums) - len(gains), sum(s[1] for s in sums if not s[0])))
    w('gains within 20 points: %d of %d; twins with a finding beside those by design: %s' % (
        sum(s[3] for s in sums), len(sums), twins if judged_twins else 'none was judged'))
    return wrong


def show_wrong(work, wrong):
    for n, verdicts in wrong:
        for v in (n, n + '-twin'):
            found = answers(work, v)
            for f in found or []:
                p = f.get('prediction') or {}
                print('--- %s (%s): %s, gain %s [%s, %s]' % (v, ', '.join(verdicts), f['remedy'],
                      p.get('gain'), p.get('low'), p.get('high')))
                print(about(f))
            if found == [] and v == n:
                d = json.load(open(os.path.join(work, 'judged', v + '.json')))
                print('--- %s (%s): other findings: %s' % (v, ', '.join(verdicts), [f['remedy'] for f in d['findings']]))
                print(d.get('healthy'))
                print('\n'.join((d.get('notes') or [])[:2]))


def clock(text):
    h, m = map(int, text.split(':'))
    t = list(time.localtime())
    t[3:6] = h, m, 0
    return time.mktime(tuple(t))


def main():
    a = argparse.ArgumentParser(description=__doc__)
    a.add_argument('parts', nargs='*', metavar='PART', help='build, measure, judge, table, wrong (all but the last)')
    a.add_argument('--only', help='programs, separated by commas')
    a.add_argument('--work', default='planted-work', help='where binaries, runs and answers go')
    a.add_argument('--tool', default='nearmiss')
    a.add_argument('--pairs', type=int, default=9, help='quiet pairs wanted of each program')
    a.add_argument('--until', type=clock, help='begin nothing after this time, HH:MM')
    a.add_argument('--keep', action='store_true', help='add to what was measured before')
    a.add_argument('--twins', choices=['both', 'no', 'only'], default='both', help='what to judge')
    a.add_argument('--table', metavar='FILE', default='table.txt', help='where the table is kept, beside this script')
    a.add_argument('--nice', type=int, default=5, help='for the tool')
    o = a.parse_args()
    parts = o.parts or ['build', 'measure', 'judge', 'table']
    names = o.only.split(',') if o.only else list(PROGRAMS)
    work = os.path.abspath(o.work)
    os.makedirs(work, exist_ok=True)
    print(machine(), flush=True)
    if 'build' in parts:
        build(work, names)
    if 'measure' in parts:
        measure(work, names, o.pairs, o.until, o.keep)
    if 'judge' in parts:
        which = {'both': (False, True), 'no': (False,), 'only': (True,)}[o.twins]
        judge(work, names, o.tool, o.until, which, o.nice)
    if 'table' in parts:
        with open(os.path.join(HERE, o.table), 'w') as f:
            table(work, names, f)
    if 'wrong' in parts:
        show_wrong(work, table(work, names, open(os.devnull, 'w')))


main()
