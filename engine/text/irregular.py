"""English words that no stemmer brings together: ``went`` and ``go``, ``men`` and ``man``.

And the everyday pairs mom and mother, dad and father.
"""

from __future__ import annotations

_FORMS = """
    arise arose arisen|awake awoke awoken|become became|begin began begun|bend bent|bite bit bitten
    bleed bled|blow blew blown|break broke broken|breed bred|bring brought|build built|burn burnt
    buy bought|catch caught|choose chose chosen|cling clung|come came|creep crept|deal dealt|dig dug
    draw drew drawn|dream dreamt|drink drank drunk|drive drove driven|eat ate eaten|fall fell fallen
    feed fed|feel felt|fight fought|find found|flee fled|fly flew flown|forget forgot forgotten
    forgive forgave forgiven|freeze froze frozen|give gave given|go went gone goes|grow grew grown
    hang hung|hear heard|hide hid hidden|hold held|keep kept|kneel knelt|know knew known|lay laid
    lead led|lean leant|leap leapt|learn learnt|leave left|lend lent|lie lain lying|light lit
    lose lost|make made|mean meant|meet met|pay paid|prove proven|ride rode ridden|ring rang rung
    rise risen|run ran|say said|see saw seen|seek sought|sell sold|send sent|sew sewn
    shake shook shaken|shine shone|shoot shot|show shown|shrink shrank shrunk|sing sang sung
    sink sank sunk|sit sat|sleep slept|slide slid|smell smelt|speak spoke spoken
    spend spent|spill spilt|spin spun
    spring sprang sprung|stand stood|steal stole stolen|stick stuck|sting stung|strike struck
    strive strove striven|swear swore sworn|sweep swept|swell swollen|swim swam swum|swing swung
    take took taken|teach taught|tear tore torn|tell told|think thought|throw threw thrown
    understand understood|wake woke woken|wear wore worn|weave wove woven|weep wept|win won
    withdraw withdrew withdrawn|write wrote written|overcome overcame|undergo underwent undergone
    child children|man men|woman women|person people persons|foot feet|tooth teeth|mouse mice
    goose geese|wife wives|knife knives|life lives|leaf leaves|half halves|shelf shelves
    criterion criteria|phenomenon phenomena|datum data|medium media|index indices|matrix matrices
    vertex vertices|hypothesis hypotheses|analysis analyses|basis bases|diagnosis diagnoses
    crisis crises|thesis theses|axis axes|mom mum mommy mummy mother|dad daddy father"""

BASE_FORMS: dict[str, str] = {}
"""Irregular form → base form, folded."""

for _group in _FORMS.replace("\n", "|").split("|"):
    _base, *_others = _group.split() or [""]
    BASE_FORMS.update((form, _base) for form in _others)
