Muž v modré košili čte noviny na lavičce v parku.
Dvě malé děti si hrají s míčem na zelené trávě.
Hnědý pes běží po pláži za létajícím talířem.
Stará žena prodává jablka a hrušky na trhu.
Tři chlapci jedou na kolech úzkou ulicí.
Dívka s dlouhými vlasy hraje na housle před kostelem.
Na stole stojí bílá konvice a dva šálky čaje.
Černá kočka spí na okně vedle květináče.
Lidé čekají na nástupišti na ranní vlak.
Kuchař v bílé zástěře krájí cibuli na velkém prkně.
Skupina turistů stoupá po kamenité cestě k vrcholu hory.
Malý chlapec staví hrad z písku u moře.
Mladý pár tančí na ulici v dešti.
V zimě děti sáňkují z kopce za školou.
Dělník v oranžové vestě opravuje silnici.
Žena v červeném kabátě venčí dva bílé psy.
Fotbalista kope míč směrem k brance.
Babička plete svetr v křesle u kamen.
Na jezeře pluje malá loďka s bílou plachtou.
Otec nese v náručí spící dceru.
Plavec skáče do bazénu z vysokého můstku.
Dva přátelé pijí kávu v malé kavárně na rohu.
Učitelka píše na tabuli a žáci ji poslouchají.
Kůň skáče přes dřevěnou překážku.
Holčička ve žlutých holínkách skáče do louže.
Hudebník s kytarou zpívá na rušném náměstí.
Rybář sedí na břehu řeky a drží dlouhý prut.
Nad městem letí barevný balon.
Pekař vytahuje z pece čerstvý chléb.
Rodina obědvá na dece pod velkým stromem.
Cyklista v přilbě projíždí zatáčkou.
Žena zalévá květiny na balkoně.
Ve sněhu stojí sněhulák s mrkví místo nosu.
Mnoho lidí se prochází po nábřeží při západu slunce.
Tenistka v bílé sukni odpaluje míček raketou.
Hasič stojí na žebříku a stříká vodu na střechu.
Chlapec krmí kachny na okraji rybníka.
Starší muž hraje šachy se svým vnukem.
Několik studentů sedí na schodech a směje se.
Prodavačka váží rajčata na staré váze.
Dva psi se přetahují o klacek na louce.
Lyžař sjíždí prudký svah a zvedá mračno sněhu.
Dívka si čistí zuby před zrcadlem v koupelně.
Červený autobus zastavuje na zastávce před nemocnicí.
Zahradník stříhá keře velkými nůžkami.
Matka čte dětem pohádku před spaním.
Na drátě sedí řada malých ptáků.
Číšník nese podnos plný sklenic.
Muž a žena společně malují zeď na zeleno.
Dítě v kočárku drží plyšového medvěda.
Surfař jede na vysoké vlně.
Kluci hrají basketbal na hřišti mezi domy.
Mechanik leží pod autem a utahuje šroub.
Krávy se pasou na louce pod lesem.
Žena v klobouku fotografuje starý most.
Sbor zpívá koledy u vánočního stromu.
Mladík s batohem běží za odjíždějícím vlakem.
Dvě ženy si povídají u plotu na zahradě.
Kotě si hraje s klubkem červené vlny.
Bubeník na pódiu buší do bubnů.
Policista řídí dopravu na velké křižovatce.
Chlapec v pruhovaném tričku jí zmrzlinu.
Žena věší mokré prádlo na šňůru za domem.
Na pódiu tančí čtyři dívky ve stejných šatech.
Ovce přecházejí silnici a auta čekají.
Děda učí vnučku jezdit na kole.
Muž s deštníkem přechází mokrou ulici.
Hokejisté se perou o puk u mantinelu.
Dívka v zelené čepici válí velkou sněhovou kouli.
V kuchyni se na sporáku vaří polévka.
Tři ženy cvičí jógu na trávě v parku.
Veverka drží v tlapkách ořech.
Stavební dělníci pijí vodu ve stínu zdi.
Malá holčička fouká bubliny na dvoře.
Dva muži stěhují těžkou pohovku do bytu.
Běžkyně si zavazuje tkaničku u cesty.
Na břehu leží převrácená dřevěná loď.
Chlapec leze na strom a jeho kamarád se dívá.
Lékařka poslouchá srdce malého pacienta.
Lidé na trhu si prohlížejí koše s ovocem.
Žena peče koláč se švestkami.
Pes se třepe a voda stříká na všechny strany.
Starý muž s bílým vousem kouří dýmku na zápraží.
Dvojčata v modrých bundách se drží za ruce.
Kapela hraje na náměstí a diváci tleskají.
Muž štípe dřevo před chatou v horách.
Dívka píše dopis u psacího stolu.
Nad hladinou moře krouží racci.
Děti malují křídou na chodník.
Žena na lavičce kojí miminko.
Skupina mladých lidí opéká klobásy u ohně.
Jezdec na motorce skáče přes hromadu hlíny.
Brankář chytá míč oběma rukama.
Kočka pozoruje zlaté rybky v akváriu.
Muž v obleku telefonuje před vysokou budovou.
Rodina zdobí vánoční stromek v obývacím pokoji.
Dvě dívky se houpají na houpačkách.
Traktor orá pole a za ním létají ptáci.
Kluk s brýlemi čte tlustou knihu v knihovně.
Potápěč plave vedle velké želvy.
Pošťačka vhazuje dopisy do schránky.
Na ulici je zaparkováno staré zelené auto.
Sestra češe mladšímu bratrovi vlasy.
Muž myje okna ve třetím patře.
Slon si stříká vodu na záda.
Děti v barevných kostýmech jdou v průvodu městem.
Mladá žena čeká na autobus a poslouchá hudbu.
Bruslaři kloužou po zamrzlém rybníku.
Muž prodává balonky u vchodu do zoologické zahrady.
Kominík v černém oblečení stojí na střeše.
Dva chlapci nesou kbelík plný vody.
Kachna s mláďaty plave mezi lekníny.
Malíř kreslí portrét turistky na mostě.
Žena v plavkách leží na žlutém ručníku.
Chlapeček ukazuje prstem na letadlo.
Zákazníci stojí ve frontě před pekárnou.
Fenka leží v trávě se třemi štěňaty.
Vítr odnáší chlapci čepici z hlavy.
Muž s plnovousem hraje na akordeon ve vlaku.
Ženy v dlouhých sukních nesou na hlavách koše.
Dvě děti se schovávají za závěsem.
Kuchařka míchá těsto ve velké míse.
Na zdi visí hodiny a starý obraz.
Horolezec visí na laně nad hlubokým údolím.
Malé tele pije mléko z láhve.
Čtyři muži hrají karty u kulatého stolu.
Chlapec se snaží chytit motýla do síťky.
Uprostřed louky stojí velký bílý stan.
Hráči v červených dresech slaví vítězství.
Žena si zkouší boty v obchodě.
Starší pár se prochází alejí se spadaným listím.
Bílý kůň táhne vůz plný sena.
Děvčátko podává babičce kytici sedmikrásek.
Vodák na kajaku sjíždí divokou řeku.
Švadlena šije modré šaty na stroji.
Tři kočky leží na teplé střeše.
Muž odhazuje lopatou sníh před garáží.
Dívky hrají volejbal na písku.
Dítě sedí na podlaze a skládá dřevěné kostky.
Řidič taxíku nakládá kufry do auta.
Lidé s deštníky spěchají přes náměstí.
Šedý kocour pije mléko z misky.
Žena v rukavicích sází růže podél zdi.
Klavírista hraje v prázdném sále.
Chlapci přelézají nízkou kamennou zeď.
Medvěd loví ryby v mělké řece.
Sportovec zvedá nad hlavu těžkou činku.
Dívka v bílých šatech nese svíčku.
Dva sousedé opravují starý plot.
Na talíři leží kus sýra a krajíc chleba.
Opice sedí na větvi a loupe banán.
Muž v černém kabátě schází po schodech do metra.
Sněžný pluh odklízí silnici mezi poli.
Děti stojí v kruhu a drží se za ruce.
Žena drží v náručí novorozené jehně.
Na hřišti leží zapomenutý míč.
Tanečnice v růžové sukni se otáčí na špičkách.
Prodavač ryb rovná čerstvé ryby na led.
Muž vystupuje z vlaku s velkým kufrem.
Chlapec a dívka sdílejí jeden deštník.
Kluk skáče na trampolíně vysoko do vzduchu.
Za oknem padá hustý sníh.
Holubi zobou drobky pod lavičkou.
Matka zapíná synovi zimní bundu.
Několik lidí pozoruje ohňostroj z mostu.
Gymnastka balancuje na úzké kladině.
Muž griluje maso na zahradě.
Dvě lodě kotví v malém přístavu.
Kluk klečí u potoka a pouští papírovou lodičku.
Zedník staví zeď z červených cihel.
Uprostřed náměstí stojí kamenná kašna.
Rozhodčí ukazuje hráči žlutou kartu.
Dvě sestry pletou copánky svým panenkám.
Liška běží přes zasněžené pole.
Sekretářka píše na počítači a pije čaj.
Mladí lidé sedí na trávě a poslouchají koncert.
Průvodčí kontroluje jízdenky cestujícím ve vlaku.
Na pláži stojí řada barevných slunečníků.
Chlapec v pyžamu jí ke snídani ovesnou kaši.
Dvě ženy nesou plné nákupní tašky.
Farmář krmí slepice na dvoře.
Muž spí v houpací síti mezi dvěma stromy.
Dívka fotí telefonem západ slunce nad mořem.
Pes s červeným obojkem sedí před dveřmi.
Žáci zvedají ruce, protože znají odpověď.
Stará tramvaj jede do kopce.
Muž s kladivem spravuje střechu stodoly.
Batole dělá první kroky ke své matce.
Sportovkyně hází oštěpem na prázdném stadionu.
Kluci házejí kameny do vody.
V květnu kvetou v sadu třešně.
Žena si maluje rty červenou rtěnkou.
Tři muži tlačí auto, které uvízlo v blátě.
Mladá dívka hraje na flétnu ve školním orchestru.
Rodiče tlačí kočárek po lesní cestě.
Na ledě leží rozbitá hokejka.
Řezník balí maso do papíru.
Dítě v autosedačce tvrdě spí.
Sousedka zametá schody před domem.
Lidé v teplých kabátech pijí svařené víno na vánočním trhu.
Žába sedí na velkém listu uprostřed rybníka.
Muž vylévá vodu z boty.
Dva závodníci běží těsně vedle sebe k cíli.
Dívka se dívá z okna jedoucího vlaku.
Chlapec drží v ruce malého ježka.
Několik žen třídí brambory na poli.
Kouzelník vytahuje z klobouku bílého králíka.
Nad lesem svítí měsíc v úplňku.
Táta opravuje synovi rozbité kolo.
Skupina dětí v plaveckých čepicích stojí u bazénu.
Žena žehlí košili a dívá se na televizi.
Na parapetu chladne jablečný koláč.
Velbloudi kráčejí v řadě pouští.
Kluk v kovbojském klobouku jede na poníkovi.
Muž a jeho pes odpočívají ve stínu stromu.
Květinářka váže kytici žlutých tulipánů.
Vojáci v uniformách pochodují po hlavní ulici.
Dívka se učí plavat s modrou deskou.
Na konci mola stojí osamělý rybář.
Babička s vnoučaty peče vánoční cukroví.
Kolem stolu sedí šest lidí a večeří.
Pes ve vlaku leží pod sedadlem.
Saxofonista hraje v parku pro kolemjdoucí.
Dvě veverky se honí kolem kmene stromu.
Muž ve žluté pláštěnce jede na kole v dešti.
Dívenka líže lízátko a usmívá se.
Za plotem štěká velký černý pes.
Kamarádi staví stan na břehu jezera.
Žena míchá salát dřevěnou lžící.
Pasažéři nastupují do letadla po schodech.
Chlapec se usmívá, i když mu chybí dva zuby.
Hrnčíř tvaruje na kruhu hliněnou vázu.
Zebra pije vodu z jezírka.
V tělocvičně cvičí skupina starších žen.
Mladík na skateboardu sjíždí po zábradlí.
Na věšáku visí mokrý kabát a šedý klobouk.
Dědeček vypráví příběh a děti ho pozorně poslouchají.
Dívka v červeném svetru sbírá houby v lese.
Muž nalévá vodu do sklenice.
Dvě hnědé krávy stojí u dřevěného plotu.
Číšnice utírá stoly po obědě.
Malí fotbalisté běží přes rozbahněné hřiště.
Kočka se protahuje na měkké pohovce.
V tramvaji stojí muž s květinou v ruce.
Čtyři přátelé sedí v autě a zpívají.
Kluk stříká na sestru vodu z hadice.
Mladá veterinářka prohlíží nemocného psa.
Na dlouhém laně visí barevné vlajky.
Nevěsta hází kytici svým kamarádkám.
Tučňáci stojí těsně vedle sebe na ledu.
Žena nese přes řeku malé dítě na zádech.
Chlapci se koulují na školním dvoře.
Starý muž krmí holuby na náměstí.
Na větvi sedí sova s velkýma očima.
Dirigent zvedá ruce a orchestr začíná hrát.
Studenti nesou před univerzitou velký transparent.
Dívka kreslí pastelkami dům se zahradou.
Muž v modrých montérkách nese žebřík.
Stádo koní běží podél řeky.
Tři dívky se fotí před velkou sochou.
Plachetnice se naklání v silném větru.
Kluk s chrániči na kolenou se učí bruslit.
Sklenice mléka stojí vedle talíře s koláčem.
Řemeslník vyřezává loutku ze dřeva.
Dva muži v lodi vytahují z vody síť.
Žena si v parku čte a pije limonádu.
Děti krmí kozy přes plot.
Vysoký muž podává ženě knihu z horní police.
Na nádraží se objímají dvě sestry.
Parkem se procházejí lidé s kočárky.
Boxer v černých rukavicích trénuje s pytlem.
Mladá rodina si prohlíží lvy v zoologické zahradě.
Kolem kostela leží hluboký sníh.
Dívka v tmavých brýlích řídí otevřené auto.
Prodavač zmrzliny podává kornout malému chlapci.
Včelař v bílém obleku otevírá úl.
Dva chlapci se přetahují o hračku.
Herci v maskách se klaní divákům.
Muž s holí jde pomalu po chodníku.
Na střeše domu hnízdí čápi.
Žena a její dcera vybírají látku na šaty.
Lyžařka stojí na kopci a dívá se do údolí.
Kuře se líhne z vajíčka.
Kuchař vyhazuje palačinku do vzduchu.
Chlapec sedí na schodech a zavazuje si boty.
Ulice je plná aut a lidí.
Řidič autobusu pomáhá staré paní vystoupit.
Malá děvčata v baletních šatech čekají za oponou.
Na podlaze se válejí knihy a hračky.
Fotografka klečí v trávě a fotí motýla.
Mladá žena platí na trhu za košík jahod.
Dva bílí psi táhnou sáně sněhem.
Muž se holí před malým zrcadlem.
Přes most přejíždí dlouhý nákladní vlak.
Děti se smějí klaunovi s červeným nosem.
Holka v kostkované košili jezdí na koni.
Nikdo nesedí na mokrých lavičkách v parku.
Zubařka prohlíží zuby malému chlapci.
Bratři spolu hrají stolní tenis ve sklepě.
Kolem ohně tančí muži s pomalovanými obličeji.
Ryba vyskakuje nad hladinu jezera.
Žena drží v jedné ruce tašku a v druhé klíče.
Chlapec odpočívá na lavičce vedle svého kola.
Učitel ukazuje dětem na mapě velkou řeku.
Ve výloze obchodu leží zlaté hodinky.
Dva cestující spí na sedadlech v letadle.
Tlustá kočka leží na klávesnici počítače.
Zpěvačka v dlouhých černých šatech drží mikrofon.
Dívka skáče na dvoře přes švihadlo.
Stará dřevěná chata stojí na okraji lesa.
Muž vykládá bedny s pomeranči z nákladního auta.
Mnoho fanoušků mává šálami na stadionu.
Laň s kolouchem stojí na mýtině.
Muž v bílém plášti se dívá do mikroskopu.
Matka fouká synovi na odřené koleno.
Dívka se opírá o zeď a telefonuje.
Za řekou je vidět starý hrad.
Tři generace jedné rodiny sedí u jednoho stolu.
Závodní auta projíždějí cílovou rovinkou.
Dva natěrači barví fasádu domu na žluto.
Papoušek sedí chlapci na rameni.
Žena ve sportovním oblečení běží po schodech nahoru.
Dítě se dívá na kapky deště na okně.
Bez čepice a rukavic stojí chlapec ve sněhu.
Prodavač knih čte za pultem svého krámku.
Lidé na břehu mávají odplouvající lodi.
Muž utírá nádobí a jeho žena je umývá.
Pod mostem spí bezdomovec zabalený do deky.
Na hladině rybníka se odráží modré nebe.
Golfista v bílé čepici sleduje letící míček.
Dvě štěňata spí stočená v košíku.
Mladý muž klečí a nabízí dívce prsten.
Kluci staví na stromě domek z prken.
Studenti v laboratoři míchají barevné tekutiny.
Žena otevírá dveře a vítá hosty.
Sníh pokrývá střechy celé vesnice.
Lev leží ve vysoké suché trávě.
Dívka vaří čaj pro nemocného bratra.
Chlapec sjíždí po dlouhé modré skluzavce.
Ženy v krojích zpívají lidové písně.
Opravář v kombinéze spravuje starou pračku.
Pes čeká, až jeho pán vyjde z obchodu.
Dvě auta stojí na červenou před přechodem.
Muž nese na rameni dlouhý kmen stromu.
Děti sedí ve třídě a malují vodovými barvami.
Jeřáb zvedá těžké betonové desky.
Brankářka leží na zemi a míč je v síti.
Dívka trhá zralé třešně ze stromu.
Vzduchem letí hejno divokých hus.
Chlapec svítí baterkou do tmavé jeskyně.
Žena v zeleném šátku prodává na ulici pečené kaštany.
Dva jezdci na koních projíždějí mělkou vodou.
Na zahradě stojí velký kulatý bazén.
Unavený dělník jí svačinu na hromadě cihel.
Koza stojí na skále a dívá se dolů.
Na kraji silnice stopuje mladý pár s batohy.
Otec a syn pouštějí na poli červeného draka.
Plešatý muž luští v čekárně křížovku.
Malá sestřička tahá bratra za rukáv.
V přístavu dělníci nakládají loď.
Po obloze se ženou tmavé mraky.
Dvě hráčky se perou o míč uprostřed hřiště.
Chlapec v modrém kabátku nese lucernu.
Hladoví vrabci čekají na krmítku na zrní.
Muž s dlouhými vlasy ladí kytaru.
Dcera ukazuje otci svůj nový obrázek.
V autobuse čte několik lidí noviny.
Kombajn sklízí pšenici za horkého dne.
Kamarádky si zkoušejí klobouky a smějí se.
Pes vyskakuje a chytá míč do tlamy.
Dva starší pánové se hádají u novinového stánku.
Plavčík sedí na vysoké židli a hlídá pláž.
Dívka češe hřívu hnědému koni.
Na stole hoří jediná svíčka.
Žena skládá čisté ručníky do skříně.
Kluk se dívá dalekohledem na hvězdy.
Bílá ovce s černou hlavou leží v seně.
Tanečníci v barevných krojích se točí v kruhu.
Muž na lavičce krmí z ruky veverku.
Čtyři veslaři trénují brzy ráno na řece.
Teta přináší na stůl dort se svíčkami.
Chlapci stojí na břehu a učí se nahazovat udici.
Železniční přejezd je zavřený a auta stojí.
Malý chlapec objímá velkého chlupatého psa.
Kavárna na náměstí má venku červené židle.
Žena v helmě leze po umělé stěně.
Delfín skáče skrz obruč nad vodou.
Nemocný chlapec leží v posteli s teploměrem v ústech.
Dvě stařenky sedí před domem a loupou hrách.
Muž zapaluje oheň v krbu.
Holčička stojí na židli a umývá nádobí.
Houslista sedí na rohu ulice s otevřeným pouzdrem.
Na větvích stromu visí zralá jablka.
Závodní plavkyně se odráží od stěny bazénu.
Dítě vkládá minci do prasátka.
Přes potok vede úzká dřevěná lávka.
Mladý muž pomáhá babičce s těžkou taškou.
Dva kohouti se perou na dvoře.
Děvčata sedí v kruhu a hrají si s panenkami.
Starosta stříhá červenou pásku před novou školou.
Na horské louce rostou modré květy.
Muž tlačí vozík mezi regály supermarketu.
Řidič kamionu si v kabině čte mapu.
Syn pomáhá matce prostírat stůl.
Velká vlna naráží na skalnaté pobřeží.
Dívka v modré čepici se na kluzišti drží zábradlí.
Chodci přecházejí po přechodu na zelenou.
Zatímco matka vybírá na trhu zeleninu, její malý syn drží na vodítku hnědého psa.
Na konci dlouhého dne sedí dělníci na kraji nedokončené zdi, pijí studenou vodu a povídají si o svých rodinách.
Dvě děti v teplých bundách stojí u okna a pozorují, jak venku padá první sníh letošní zimy.
Starý muž s kyticí bílých růží čeká na nástupišti, až přijede vlak, ve kterém sedí jeho žena.
Když začíná pršet, lidé na náměstí rychle sbírají své věci a schovávají se pod střechu tržnice.
Chlapec, který má na sobě příliš velký svetr, ukazuje kamarádům šneka, kterého našel pod kamenem v zahradě.
Mladá žena s kamerou na rameni natáčí skupinu tanečníků, kteří nacvičují své vystoupení na prázdném parkovišti.
V malé kuchyni s modrými dlaždicemi stojí u stolu otec a jeho dvě dcery a společně válejí těsto na koláče.
Několik cyklistů odpočívá ve stínu stromů u cesty, protože slunce pálí a do nejbližší vesnice je ještě daleko.
Pes, jehož srst je celá mokrá a plná písku, si lehá na deku přímo vedle spící ženy.
Bagr kope hlubokou jámu vedle silnice.
Dívka si v lese staví domeček z větví.
Na lavičce leží zapomenutý černý deštník.
Herečka si v šatně nasazuje blond paruku.
Tři malá koťata lezou po schodech.
Muž ořezává tužku malým nožem.
Na poli za vesnicí přistává vrtulník.
Žena si suší mokré vlasy ručníkem.
Kluci se dívají dírou v plotě na fotbalový zápas.
Prodavač na tržišti křičí a ukazuje na melouny.
Dvě želvy se vyhřívají na kameni.
Starší žena v brýlích navléká nit do jehly.
Děti běží ke škole, protože zvoní zvonek.
Muž sundává synovi mokré ponožky.
Po zamrzlé řece jdou dva muži s lyžemi na ramenou.
Vedle dveří stojí troje špinavé boty.
Kapitán v bílé uniformě stojí na palubě lodi.
Jedna dívka zpívá a druhá ji doprovází na klavír.
Chlapec schovává za zády dárek pro maminku.
Uprostřed prázdné silnice sedí zajíc.
Mladí sportovci protahují nohy před závodem.
Žena měří délku záclony u okna.
Zdravotní sestra obvazuje pacientovi ruku.
Modrý motýl sedí na bílém květu.
Turisté poslouchají průvodce před starou radnicí.
Muž v zimní čepici vrtá díru do ledu.
Ve vaně se koupou dvě malé děti.
Vlk stojí na okraji lesa a poslouchá.
Mnich v hnědém rouchu zvoní na zvon.
Sestřenice si na zahradě hrají na schovávanou.
Pod starým dubem stojí prázdná houpačka.
Muž se snaží vytáhnout auto z hlubokého sněhu.
Dvě kuchařky zdobí čokoládový dort.
Kluk na invalidním vozíku hází míč do koše.
Chlapi ve vesnické hospodě zpívají a pijí pivo.
Letadlo nechává na modrém nebi bílou čáru.
Kameník opracovává velký kus mramoru.
Dívka sedí v koruně stromu a čte si.
Malý pes štěká na pošťáka na kole.
Chlapec stojí na rukou u zdi.
Sběratel ukazuje přátelům staré mince.
Rodiče v první školní den fotí děti před školou.
Ryby se pečou na roštu nad žhavým uhlím.
Za soumraku se ve městě rozsvěcují lampy.
Kominíkův žebřík stojí opřený o komín.
Na kole jede dívka s košíkem plným květin.
Dva chlapci v holínkách čistí příkop.
Prázdný vlak stojí na konečné stanici.
Stará paní mává z okna svým sousedům.
Mladá matka houpe kolébku a tiše zpívá.
Horská bystřina teče mezi velkými balvany.
Dvě hráčky badmintonu si podávají ruce přes síť.
Muž sbírá hrozny na svahu nad řekou.
Chlapec se potápí pro minci na dno bazénu.
Kočár se dvěma koňmi čeká před divadlem.
Tlupa opic přebíhá přes střechu chrámu.
Dívka s rovnátky se směje na celé kolo.
Na sněhu jsou vidět čerstvé stopy zajíce.
